"""Numbers and times as people read them; ``static/js/format.js`` says every one of them the same way.

Both are tested against ``tests/dashboard/formats.json``, so a number that the server painted does not change
its shape when the socket brings the next one. Unknown (None) is an en dash, never 0.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_UP, Decimal

from django.utils import timezone
from django.utils.translation import gettext, ngettext

from streams import durations

UNKNOWN = "–"
_IEC = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3600, 86_400
_YEAR = 365 * _DAY
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_S, _LAST_S = (
    (edge.replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1) for edge in (datetime.min, datetime.max)
)


def _fixed(value: float, decimals: int) -> str:
    """Round half up, as JavaScript's ``toFixed`` does; Python's own formatting rounds half to even."""
    exponent = Decimal(1).scaleb(-decimals)
    return f"{Decimal(value).quantize(exponent, rounding=ROUND_HALF_UP):,}"


def _three_digits(value: float) -> str:
    """Three significant digits from 1 up, thousands separated beyond."""
    if value >= 99.95:
        return _fixed(value, 0)
    return _fixed(value, 1 if value >= 9.995 else 2)


def count(value: int | None) -> str:
    """``336,776``: every digit, thousands separated."""
    return UNKNOWN if value is None else f"{int(value):,}"


def messages(value: int) -> str:
    """``1 message``, ``336,776 messages``: for sentences about something else, too."""
    return ngettext("%(count)s message", "%(count)s messages", value) % {"count": count(value)}


def short_count(value: float | None) -> str:
    """``337 k``: for axes and other places without room."""
    if value is None:
        return UNKNOWN
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{_three_digits(value / size)} {unit}"
    return _fixed(value, 0) if float(value).is_integer() else _three_digits(value)


def size(value: float | None) -> str:
    """``82.4 MiB`` from bytes; IEC units, three digits."""
    if value is None:
        return UNKNOWN
    if value < 1024:
        return f"{_fixed(value, 0)} B"
    scaled = float(value)
    for unit in _IEC:
        scaled /= 1024
        if scaled < 999.5 or unit == _IEC[-1]:
            return f"{_three_digits(scaled)} {unit}"
    raise AssertionError("the last unit takes everything")


def rate(value: float | None) -> str:
    """``1,234/s`` from events a second; a trickle is ``<0.01/s``, silence ``0/s``."""
    if value is None:
        return UNKNOWN
    if value <= 0:
        return "0/s"
    return "<0.01/s" if value < 0.01 else f"{_three_digits(value)}/s"


def size_rate(value: float | None) -> str:
    """``1.21 MiB/s`` from bytes a second."""
    return UNKNOWN if value is None else f"{size(value)}/s"


def percent(value: float | None) -> str:
    """``82 %`` from a fraction."""
    return UNKNOWN if value is None else f"{_fixed(value * 100, 0)} %"


def share(value: float | None) -> str:
    """As ``percent``, of a part that is not said to be none or all of it where it is not."""
    if value is not None and 0 < value < 0.005:
        return "< 1 %"
    if value is not None and 0.995 <= value < 1:
        return "> 99 %"
    return percent(value)


def duration(seconds: float | None) -> str:
    """``2 d 4 h`` from seconds: the two largest units, the second one left out when it is nought."""
    return UNKNOWN if seconds is None else durations.written(seconds)


def foreseen(seconds: float) -> str:
    """As ``duration``, of what the rate of an hour at most leads to: beyond a year it tells no more than that."""
    return duration(seconds) if seconds <= _YEAR else gettext("more than a year")


def latency(seconds: float | None) -> str:
    """``12 ms`` or ``1.75 s`` from seconds: what is over in a moment; from a minute on as ``duration``."""
    if not seconds or seconds >= _MINUTE:
        return duration(seconds)
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{_three_digits(seconds)} s"


def age(seconds: float | None) -> str:
    """``4 min ago`` from seconds: one unit is enough for "when"."""
    if seconds is None:
        return UNKNOWN
    whole = int(seconds)
    if whole < 1:
        return gettext("now")
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s")):
        if whole >= unit:
            return gettext("%(time)s ago") % {"time": f"{whole // unit} {name}"}
    raise AssertionError("a second or more has a unit")


def moment(ms: int | None) -> str:
    """``2026-11-21 07:05:53.123 UTC`` or ``2026-11-21 08:05:53.123 +01:00`` from unix milliseconds.

    The exact form, for titles and details, in the zone that is active (see ``dashboard.zones``).
    """
    return UNKNOWN if ms is None else f"{clock(ms)} {offset(ms)}"


def clock(ms: int) -> str:
    """``2026-11-21 07:05:53.123`` in the active zone, where a heading names it."""
    return f"{_local(ms).isoformat(' ')[:19]}.{ms % 1000:03d}"


def minute(ms: int) -> str:
    """``2026-11-21 07:05`` in the active zone, where a zone stands beside it and seconds say nothing."""
    return _local(ms).isoformat(" ")[:16]


def span(first_ms: int, last_ms: int) -> str:
    """``2026-11-21 07:05 to 08:10 UTC`` in the active zone, with the day of the end where it is another."""
    first, last = minute(first_ms), minute(last_ms)
    if first == last:
        return f"{first} {offset(last_ms)}"
    end = last.removeprefix(f"{first[:10]} ")
    return gettext("%(first)s to %(last)s") % {"first": first, "last": f"{end} {offset(last_ms)}"}


def offset(ms: int) -> str:
    """How far the active zone is from UTC at a moment: ``UTC`` or ``+01:00``."""
    at = _local(ms)
    return "UTC" if zone_name() == "UTC" else at.isoformat()[19:25]


def zone_name() -> str:
    """The active zone: ``Europe/Berlin``."""
    return str(timezone.get_current_timezone())


def iso_local(ms: int) -> str:
    """``2026-11-21T08:05:53.123+01:00``, or with ``Z``: for tables that other programs read, in the active zone."""
    return iso(ms) if zone_name() == "UTC" else _local(ms).isoformat()[:19] + f".{ms % 1000:03d}{offset(ms)}"


def _local(ms: int) -> datetime:
    return _at(ms, timezone.get_current_timezone())


def iso(ms: int) -> str:
    """``2026-11-21T07:05:53.123Z`` from unix milliseconds: the form of ``<time datetime>`` and of the API."""
    return f"{_at(ms, UTC).isoformat()[:19]}.{ms % 1000:03d}Z"


def _at(ms: int, zone: tzinfo) -> datetime:
    """The second of a moment in a zone."""
    return local(_EPOCH + timedelta(seconds=min(max(ms // 1000, _FIRST_S), _LAST_S)), zone)


def local(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """A moment in a zone, the active one unless another is said; beyond the years 1 to 9999 of its calendar the nearest
    second that they have. The one way from UTC into a zone: ``astimezone`` raises there.
    """
    zone = zone or timezone.get_current_timezone()
    try:
        return moment.astimezone(zone)
    except OverflowError:
        edge = datetime.max if moment > _EPOCH else datetime.min
        return edge.replace(microsecond=0, tzinfo=zone)


FORMATS: dict[str, Callable[..., str]] = {
    "count": count,
    "short_count": short_count,
    "size": size,
    "rate": rate,
    "size_rate": size_rate,
    "percent": percent,
    "duration": duration,
    "latency": latency,
    "age": age,
    "moment": moment,
}
