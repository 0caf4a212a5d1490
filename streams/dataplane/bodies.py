"""Small request objects: decoded strictly, every wrong field named."""

import asyncio
import re
from functools import partial
from typing import Any

from streams.dataplane.request import LARGEST_AT_ONCE_BYTES, LARGEST_INTEGER, Request, invalid
from streams.decoding import decode
from streams.errors import Refusal
from streams.naming import shortened

_MOST_CONTAINERS = 128
"""An object of ours holds a few arrays of numbers or texts."""
_MOST_MEMBERS = 20_000
"""Ten thousand leases, and what goes with them."""
_MOST_UNKNOWN = 20

_decode = partial(decode, most_containers=_MOST_CONTAINERS, most_members=_MOST_MEMBERS)


class Fields:
    """The members of a JSON object from a request; each reader refuses a wrong value by its name."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def has_value(self, name: str) -> bool:
        """Whether it was sent, and not as null."""
        return self._values.get(name) is not None

    def whole(self, name: str, *, low: int, high: int = LARGEST_INTEGER, default: int | None = None) -> int:
        """A whole number from ``low`` to ``high``; required where there is no default."""
        value = self._values.get(name)
        if value is None and default is not None:
            return default
        if type(value) is not int or not low <= value <= high:
            raise invalid(name, f"Expected a whole number from {low} to {high}.")
        return value

    def seconds(self, name: str, *, high: float, default: float) -> float:
        """Seconds from 0 to ``high``, fractions allowed."""
        value = self._values.get(name)
        if value is None:
            return default
        if type(value) not in {int, float} or not 0 <= value <= high:
            raise invalid(name, f"Expected seconds from 0 to {high:g}.")
        return float(value)

    def text(self, name: str, *, longest: int, default: str = "") -> str:
        """A string of at most ``longest`` characters."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, str) or len(value) > longest:
            raise invalid(name, f"Expected a string of at most {longest} characters.")
        return value

    def offsets(self, name: str, *, most: int) -> list[int]:
        """An array of offsets."""
        value = self._values.get(name)
        if not isinstance(value, list) or len(value) > most:
            raise invalid(name, f"Expected an array of at most {most} offsets.")
        if not all(type(each) is int and 1 <= each <= LARGEST_INTEGER for each in value):
            raise invalid(name, "Expected whole numbers, at least 1.")
        return value

    def texts(self, name: str, *, most: int, pattern: re.Pattern[str]) -> list[str]:
        """An array of strings of a given form."""
        value = self._values.get(name)
        if not isinstance(value, list) or len(value) > most:
            raise invalid(name, f"Expected an array of at most {most} strings.")
        if not all(isinstance(each, str) and pattern.fullmatch(each) for each in value):
            raise invalid(name, "This lease was not handed out here.")
        return value


async def read_fields(request: Request, *allowed: str, empty: bool = False) -> Fields:
    """The JSON object that a request carries.

    Args:
        allowed: the names it may have; another one is refused.
        empty: whether a request without a body counts as ``{}``.

    Raises:
        Refusal: ``invalid_json``, ``validation_error``, or what reading the body refuses.
    """
    request.check_media_type()
    data = await request.body()
    if not data and empty:
        return Fields({})
    value = await asyncio.to_thread(_decode, data) if len(data) > LARGEST_AT_ONCE_BYTES else _decode(data)
    if not isinstance(value, dict):
        raise Refusal("validation_error", "Expected an object.", fields=[])
    unknown = sorted(map(shortened, set(value) - set(allowed)))[:_MOST_UNKNOWN]
    if unknown:
        raise Refusal("validation_error", f"Unknown fields: {', '.join(unknown)}.", fields=unknown)
    return Fields(value)
