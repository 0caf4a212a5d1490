"""Text that every database keeps: PostgreSQL keeps no U+0000, which the JSON of a message may have anywhere."""

NUL, SHOWN = "\x00", "\N{SYMBOL FOR NULL}"


def storable(text: str) -> str:
    """The same text, with the sign for U+0000 in the place of each."""
    return text.replace(NUL, SHOWN)
