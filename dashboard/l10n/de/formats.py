"""What Django writes and reads by itself in German: numbers as in English (see ``dashboard.languages``)."""

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
