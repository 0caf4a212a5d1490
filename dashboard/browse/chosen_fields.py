"""Columns of what stands at chosen places in the bodies, cut out of their own text: every digit stays."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from django.utils.translation import gettext as _

from dashboard.browse import bodies
from streams.dataplane.marked import Marked
from streams.errors import Refusal
from streams.filters.paths import Step, path_of

MOST = 6
MOST_CHARACTERS = 300
LONGEST_CELL = 120
MOST_VALUES = 5
"""Of a path that meets several values (``.items[*].sku``) so many are shown."""

_PART = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^,"])+')
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


@dataclass(frozen=True, slots=True)
class ChosenField:
    """A path as it was written, and its steps."""

    path: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands at a path: a text to show, and what it is (``string``, ``number``, ``literal``, or neither)."""

    text: str
    kind: str = ""


def chosen(text: str) -> list[ChosenField]:
    """The fields of a list with commas between: ``.customer.id, .items[0].sku``; the first dot may be left out.

    Raises:
        ValueError: a sentence for the form.
    """
    fields = []
    for part in (each.strip() for each in _PART.findall(text)):
        if not part:
            continue
        path = part.removeprefix("$")
        path = path if path.startswith((".", "[")) else f".{path}"
        steps, rest = path_of(path)
        if rest.strip():
            raise ValueError(
                _("%(text)s is not a path, such as .customer.id or .items[0].sku.") % {"text": part}
            )
        fields.append(ChosenField(path, tuple(steps)))
    if len(fields) > MOST:
        raise ValueError(_("At most %(most)s columns can be chosen.") % {"most": MOST})
    return fields


def cell_of(body: bytes, field: ChosenField) -> Cell | None:
    """What stands at a path of a body; None for nothing."""
    try:
        marked = Marked(body)
    except Refusal:
        return None  # what was decoded may be no JSON
    found: list[Cell] = []
    for text in _texts(marked.data, field.steps):
        found.append(_cell(marked.restored(text).decode("utf-8", "replace")))
        if len(found) > MOST_VALUES:
            break
    if not found:
        return None
    if len(found) == 1:
        return found[0]
    more = "…" if len(found) > MOST_VALUES else ""
    return Cell(_cut(", ".join(each.text for each in found[:MOST_VALUES]) + more))


def _texts(data: bytes, steps: Sequence[Step]) -> Iterator[bytes]:
    """The JSON texts at a path, each cut out of the one around it; of a name that stands twice the last."""
    if not steps:
        yield data.strip()
        return
    step, following = steps[0], steps[1:]
    try:
        if isinstance(step, str):
            inner = [each for name, each in _object(data).items() if name == step]
        else:
            items = _array(data)
            inner = items if step is None else items[step : step + 1]
    except (msgspec.MsgspecError, RecursionError):
        return
    for each in inner:
        yield from _texts(bytes(each), following)


def _cell(text: str) -> Cell:
    if text.startswith('"'):
        inner = bodies.readable_string(text)[1:-1]
        return Cell(_cut(inner) if inner else '""', "string")
    if text[:1] in "{[":
        return Cell(_cut(bodies.visible(re.sub(r"\s+", " ", text[: 2 * LONGEST_CELL]))))
    return Cell(_cut(bodies.visible(text)), "literal" if text in ("true", "false", "null") else "number")


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
