"""Consumer groups: as the pages show them, and what people fill in about them."""
