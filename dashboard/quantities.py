"""What people type for numbers, times and sizes, read strictly: ``7 d``, ``10 GiB``, ``15 min ago``."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

_SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SIZES = {
    "": 1,
    "b": 1,
    **{f"{u}{tail}": 1024**n for n, u in enumerate("kmgt", 1) for tail in ("", "b", "ib")},
}
# As many digits as a float can have.
_QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,17})?)\s*([a-z]*)")
# As pages say a moment: ``2026-11-21 08:05:53.123 +01:00`` and ``2026-11-21 07:05:53.123 UTC``.
_ZONE_APART = re.compile(r"(.+:.+) (UTC|[+-][0-9]{2}:[0-9]{2})")
# SQLite keeps 64-bit signed integers.
LARGEST = 2**63 - 1
ON = ("1", "on", "true")
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""Nothing here is older or later; before and after them is room for zones, steps and a period to compare with."""


def parse_duration(text: str) -> int:
    """Whole seconds from ``90 s``, ``30 min``, ``12 h``, ``7 d``, ``2 w``; at least 1.

    Raises:
        ValueError: a sentence for the form.
    """
    return _whole(parse_seconds(text), least=_("At least 1 second."))


def parse_seconds(text: str) -> float:
    """The same with fractions: ``0.5 s``.

    Raises:
        ValueError: a sentence for the form.
    """
    match = _QUANTITY.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SECONDS:
        raise ValueError(_("Enter a number and a unit: 90 s, 30 min, 12 h, 7 d, 2 w."))
    return float(match[1]) * _SECONDS[match[2]]


def parse_size(text: str) -> int:
    """Bytes from ``500``, ``64 KiB``, ``10 GiB``; units count in 1024s; at least 1.

    Raises:
        ValueError: a sentence for the form.
    """
    match = _QUANTITY.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SIZES:
        raise ValueError(_("Enter a number and a unit: 64 KiB, 500 MiB, 10 GiB."))
    return _whole(float(match[1]) * _SIZES[match[2]], least=_("At least 1 byte."))


def written_duration(seconds: int | None) -> str:
    """``7 d`` from seconds, exactly: the largest unit that divides them; nothing for None."""
    if seconds is None:
        return ""
    unit = next(unit for unit in ("d", "h", "min", "s") if seconds % _SECONDS[unit] == 0)
    return f"{seconds // _SECONDS[unit]} {unit}"


def written_seconds(seconds: float | None) -> str:
    """The same with fractions, every digit: ``100.0625 s``."""
    if seconds is None or float(seconds).is_integer():
        return written_duration(None if seconds is None else int(seconds))
    return f"{written_number(seconds)} s"


def written_number(number: float | None) -> str:
    """Every digit of a number, without the point that a whole one has as a float; nothing for None."""
    if number is None:
        return ""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def written_size(size_bytes: int | None) -> str:
    """``10 GiB`` from bytes, exactly: the largest unit that divides them; nothing for None."""
    if size_bytes is None:
        return ""
    units = (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024), ("B", 1))
    unit, size = next((unit, size) for unit, size in units if size_bytes % size == 0)
    return f"{size_bytes // size} {unit}"


def parse_moment(text: str, *, now: datetime) -> datetime:
    """A moment in UTC from ``15 min ago``, ``now``, ``2026-11-21 07:05`` or unix milliseconds.

    A time that names no zone is meant in the active one. One before ``EARLIEST`` or after ``LATEST``, as programs write
    for "always" and "never", is that.

    Raises:
        ValueError: a sentence for the form.
    """
    return min(LATEST, max(EARLIEST, _moment(text.strip(), now=now)))


def parse_until(text: str, *, now: datetime) -> datetime:
    """A moment to come, in UTC, from ``30 min``, ``2026-11-21 07:05`` or unix milliseconds.

    Raises:
        ValueError: a sentence for the form.
    """
    try:
        until = now + timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError):
        try:
            until = parse_moment(text, now=now)
        except ValueError:
            raise ValueError(_("Enter how long, such as 30 min, or a time in the future.")) from None
    if until <= now:
        raise ValueError(_("That time has passed; enter one in the future."))
    return until


def _moment(wanted: str, *, now: datetime) -> datetime:
    if wanted.lower() in ("now", _("now")):
        return now
    try:
        if (age := _age_in(wanted)) is not None:
            return now - timedelta(seconds=parse_duration(age))
        if wanted.isascii() and wanted.isdigit():
            return datetime.fromtimestamp(int(wanted) / 1000, UTC)
        apart = _ZONE_APART.fullmatch(wanted)
        written = wanted if apart is None else apart[1] + apart[2].replace("UTC", "Z")
        given = datetime.fromisoformat(written)
        if not EARLIEST.year <= given.year < LATEST.year:
            return LATEST if given.year >= LATEST.year else EARLIEST
        return (given if given.tzinfo else given.replace(tzinfo=timezone.get_current_timezone())).astimezone(
            UTC
        )
    except (ValueError, OverflowError, OSError):
        raise ValueError(_("Enter a time such as 15 min ago, 2026-11-21 07:05 or 1795244753123.")) from None


def _age_in(text: str) -> str | None:
    """``15 min`` of ``15 min ago``, as it is said in English or in the language that is active."""
    for said in ("%(time)s ago", _("%(time)s ago")):
        before, after = (each.strip() for each in said.split("%(time)s"))
        if text.lower().startswith(before) and text.lower().endswith(after):
            return text[len(before) : len(text) - len(after)]
    return None


def _whole(value: float, *, least: str) -> int:
    if not 1 <= value <= LARGEST:
        raise ValueError(least if value < 1 else _("Too large."))
    return int(value)


def is_on(text: Any) -> bool:
    """A switch from a query string: what a form of the console sends, and what people write for it."""
    return str(text or "").lower() in ON


def number_of(text: Any, *, default: int, low: int, high: int) -> int:
    """A whole number from a query string, brought into its bounds; what is not one is the default."""
    written = str(text or "")
    if not (written.isascii() and written.isdigit() and len(written) < 19):
        return default
    return min(high, max(low, int(written)))
