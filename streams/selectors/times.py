"""Times as the log has them and as rows have them."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(unix_ms: int | None) -> datetime | None:
    """Unix milliseconds as a time in UTC, exactly."""
    return None if unix_ms is None else _EPOCH + timedelta(milliseconds=unix_ms)
