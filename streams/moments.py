"""Times as they come in, RFC 3339, always with a zone, and as the log has them. Pure; both planes use it."""

import re
from datetime import UTC, datetime, timedelta

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII | re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse(text: str) -> datetime | None:
    """A time in UTC; None when it is none as RFC 3339 has it (Python takes more of ISO 8601), or has no zone."""
    if not _RFC3339.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def unix_ms(moment: datetime) -> int:
    """Unix milliseconds, cut off: a float of seconds would lead the last second of 9999 into a year that is none."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)
