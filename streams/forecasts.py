"""Where a stream and its groups are going at the rates of now: pure arithmetic over what is known of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """What is known of a stream, and the limits that would hold (None: none).

    Attributes:
        messages, bytes: what it holds.
        rate_in, bytes_in: messages and bytes that come in a second.
        oldest_s: age of the oldest message, None in an empty stream.
        refuses: whether a full stream refuses what comes (``discard: new``), rather than let the oldest go.
    """

    messages: int
    bytes: int
    rate_in: float
    bytes_in: float
    oldest_s: float | None = None
    ttl: int | None = None
    max_messages: int | None = None
    max_bytes: int | None = None
    refuses: bool = False


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
    """The long run at these rates; None while nothing comes in."""
    if going.rate_in <= 0:
        return None
    spans = {
        "ttl": None if going.ttl is None else float(going.ttl),
        "max_messages": None if going.max_messages is None else going.max_messages / going.rate_in,
        "max_bytes": None
        if going.max_bytes is None or going.bytes_in <= 0
        else going.max_bytes / going.bytes_in,
    }
    tightest = min((span for span in spans.values() if span is not None), default=None)
    held = {
        "ttl": (going.oldest_s or 0.0, 1.0, going.ttl),
        "max_messages": (going.messages, going.rate_in, going.max_messages),
        "max_bytes": (going.bytes, going.bytes_in, going.max_bytes),
    }
    reached = {
        name: max(0.0, (limit - now) / rate)
        for name, (now, rate, limit) in held.items()
        if limit is not None and rate > 0 and (spans[name] == tightest or now >= limit)
    }
    return Forecast(
        reached_in_s=reached,
        oldest_s=spans["ttl"] if going.refuses else tightest,
        messages=None if tightest is None else round(tightest * going.rate_in),
        bytes=None if tightest is None else round(tightest * going.bytes_in),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How far a group is behind the end of its stream, and how that changes.

    Attributes:
        behind: messages from the oldest that it has not acknowledged to the end.
        behind_s: age of the oldest that it has not acknowledged.
        grows: messages a second by which ``behind`` grows; negative where the group catches up.
        ages: seconds a second by which ``behind_s`` grows; 1 for a group that stands still.
    """

    behind: int
    behind_s: float
    grows: float
    ages: float


@dataclass(frozen=True, slots=True)
class Fall:
    """That retention will take what a group has not acknowledged: in how many seconds, and which limit does it."""

    in_s: float
    limit: str


def fall(going: Going, reading: Reading) -> Fall | None:
    """When a group falls off the edge of its stream, 0 where it is there; None where it does not, as things go.

    Bytes are taken to be spread evenly over the messages that come in.
    """
    size = going.bytes_in / going.rate_in if going.rate_in > 0 else going.bytes / max(1, going.messages)
    spans = {"ttl": _until(reading.behind_s, reading.ages, going.ttl)}
    if not going.refuses:
        spans["max_messages"] = _until(reading.behind, reading.grows, going.max_messages)
        spans["max_bytes"] = _until(reading.behind * size, reading.grows * size, going.max_bytes)
    falls = [Fall(in_s, limit) for limit, in_s in spans.items() if in_s is not None]
    return (
        min(falls, key=lambda each: each.in_s, default=None) if reading.behind or reading.grows > 0 else None
    )


def _until(now: float, growth: float, limit: int | None) -> float | None:
    if limit is None:
        return None
    if now >= limit:
        return 0.0
    return (limit - now) / growth if growth > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is foreseen of a stream.

    Attributes:
        rate_in, bytes_in: messages and bytes a second that it reckons with, the mean of the last ``over_s`` seconds.
        forecast: None while nothing comes in.
        falls: group → when it falls off the edge, None where it does not; by name.
    """

    rate_in: float
    bytes_in: float
    over_s: float
    forecast: Forecast | None
    falls: Mapping[str, Fall | None]

    @property
    def falling(self) -> list[tuple[str, Fall]]:
        """The groups that fall, the next one first."""
        found = ((name, fall) for name, fall in self.falls.items() if fall)
        return sorted(found, key=lambda each: (each[1].in_s, each[0]))


class Seen(NamedTuple):
    """How a group stood at a moment.

    Attributes:
        at_s: the time.
        open: messages that it wanted and had not acknowledged.
        age_s: age of the oldest of them.
        removed: messages that went before it had acknowledged them, ever.
        behind: messages from the oldest of them to the end, with those that a filter leaves out.
    """

    at_s: float
    open: int
    age_s: float
    removed: int
    behind: int


def reading_of(window: Sequence[Seen], *, behind: int, behind_s: float, rate_in: float) -> Reading:
    """How a group reads. What is taken from it is not read: where something was, it would be behind by that, too.

    Args:
        window: of the last minutes, oldest first. Fewer than two tell nothing: it is taken to stand still.
    """
    if len(window) < 2 or window[-1].at_s <= window[0].at_s:
        return Reading(behind=behind, behind_s=behind_s, grows=rate_in, ages=1.0 if behind else 0.0)
    then, now = window[0], window[-1]
    spread = now.behind / now.open if now.open else 1.0  # what a filter leaves out lies between what it wants
    span_s, removed = now.at_s - then.at_s, max(0, now.removed - then.removed)
    grows = (now.open - then.open + removed) / span_s * spread
    ages = (now.age_s - then.age_s) / span_s
    if removed:
        ages = min(1.0, grows / rate_in) if rate_in > 0 else 1.0
    return Reading(behind=behind, behind_s=behind_s, grows=grows, ages=ages)
