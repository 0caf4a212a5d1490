"""Times as they come in: RFC 3339, always with a zone. Pure; both planes use it."""

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII | re.IGNORECASE,
)


def parse(text: str) -> datetime | None:
    """A time in UTC; None when it is none as RFC 3339 has it (Python takes more of ISO 8601), or has no zone."""
    if not _RFC3339.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
