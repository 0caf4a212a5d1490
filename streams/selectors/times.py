"""Times as the log has them and as rows have them."""

from datetime import UTC, datetime


def moment(unix_ms: int | None) -> datetime | None:
    """Unix milliseconds as a time in UTC."""
    return None if unix_ms is None else datetime.fromtimestamp(unix_ms / 1000, UTC)
