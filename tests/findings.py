"""What an alert rule found, as tests make it."""

from streams.alarms import FALLS
from streams.findings import OverLimit


def over(
    watch: str,
    value: float,
    *,
    limit: float,
    clear: float | None = None,
    stream: str = "orders",
    group: str = "billing",
) -> OverLimit:
    """A value past its limit, or not yet beyond that for clearing."""
    return OverLimit(
        stream=stream,
        group=group,
        watch=watch,
        value=value,
        limit=limit,
        clear=limit if clear is None else clear,
        falls=watch in FALLS,
    )
