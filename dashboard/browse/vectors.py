"""Numbers of 32 or 64 bits with a point, one or a vector of them, as JSON text."""

import math
import struct

from django.utils.translation import gettext as _

from dashboard.browse.packed import number_text

MOST_NUMBERS = 2000
"""What is written of one body; a page shows no more of it."""

FLOAT, DOUBLE = "<f", "<d"


def json_text(data: bytes, form: str, *, whole: bool) -> tuple[str, bool]:
    """The numbers of a vector, ``FLOAT`` or ``DOUBLE``, as a JSON array, and whether these are all.

    Raises:
        ValueError: it ends in the middle of one.
    """
    size = struct.calcsize(form)
    if not data or (whole and len(data) % size):
        raise ValueError(_("it ends in the middle of a number") if data else _("it is empty"))
    shown = data[: min(len(data) // size, MOST_NUMBERS) * size]
    numbers = (real_text(number, form) for (number,) in struct.iter_unpack(form, shown))
    return f"[{','.join(numbers)}]", whole and len(shown) == len(data)


def real_text(number: float, form: str) -> str:
    """As few digits as say which number it is; what JSON does not know by name."""
    if form == FLOAT and math.isfinite(number):
        shorter = (float(f"{number:.{digits}g}") for digits in (6, 7, 8))
        number = next((each for each in shorter if _as_float(each) == number), number)
    return number_text(number)


def _as_float(number: float) -> float:
    """A number as near as 32 bits come to it."""
    nearest: float = struct.unpack(FLOAT, struct.pack(FLOAT, number))[0]
    return nearest
