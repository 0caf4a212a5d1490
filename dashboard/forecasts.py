"""Where a stream is going at the rate of now: pure arithmetic over what is known of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """What is known: what the stream holds, what comes in a second, and the limits that would hold (None: none)."""

    messages: int
    bytes: int
    rate_in: float
    bytes_in: float
    ttl: int | None = None
    max_messages: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """Where that leads.

    Attributes:
        reached_in_s: limit → seconds until the stream comes to it, 0 when it has; a limit that it never comes to,
            since another one holds it below, is left out.
        oldest_s: how old the oldest message will be in the long run; None without an end.
        messages, bytes: what the stream will hold in the long run; None where it grows without end.
    """

    reached_in_s: dict[str, float]
    oldest_s: float | None
    messages: int | None
    bytes: int | None


def forecast(going: Going) -> Forecast | None:
    """The long run at today's rate; None while nothing comes in."""
    if going.rate_in <= 0:
        return None
    spans = {
        "ttl": None if going.ttl is None else float(going.ttl),
        "max_messages": None if going.max_messages is None else going.max_messages / going.rate_in,
        "max_bytes": None
        if going.max_bytes is None or going.bytes_in <= 0
        else going.max_bytes / going.bytes_in,
    }
    oldest = min((span for span in spans.values() if span is not None), default=None)
    held = {
        "max_messages": (going.messages, going.rate_in, going.max_messages),
        "max_bytes": (going.bytes, going.bytes_in, going.max_bytes),
    }
    reached = {
        name: max(0.0, (limit - now) / rate)
        for name, (now, rate, limit) in held.items()
        if limit is not None and rate > 0 and (spans[name] == oldest or now >= limit)
    }
    return Forecast(
        reached_in_s=reached,
        oldest_s=oldest,
        messages=None if oldest is None else round(oldest * going.rate_in),
        bytes=None if oldest is None else round(oldest * going.bytes_in),
    )
