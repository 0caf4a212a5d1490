"""What is kept, and what a change of it would take away."""
