"""A JSON body as a tree that folds, made of its own text: every digit, every name that stands twice, every order.

Nothing is turned into a number or a dictionary. A leaf knows its path, so that a click can ask for all messages
that have the same value there. Like ``bodies`` this takes hostile input: all that leaves is escaped.
"""

import json
import re
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy

from dashboard.browse import bodies

MOST_NODES = 1000
OPEN_NODES = 200
"""A body of more values than this is folded below its first level."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
LONGEST_VALUE = 2000
_LONGEST_SOUGHT = 200
_LIKE = gettext_lazy("Messages with this value")


@dataclass(frozen=True, slots=True)
class Tree:
    """A body as nested ``<details>``: ``html`` is safe; ``complete`` is False where values were left out."""

    html: SafeString
    complete: bool


@dataclass(slots=True)
class _Level:
    """An object or an array that is being written."""

    closing: str
    path: str | None
    parts: list[str] = field(default_factory=list)
    label: str = ""
    name: str | None = None
    count: int = 0
    values: int = 0

    def child_path(self) -> str | None:
        """The filter path of the value that comes next; None below a name that a filter cannot say."""
        if self.path is None:
            return None
        if self.closing == "]":
            return f"{self.path}[{self.count}]"
        try:
            name = json.loads(self.name or '""')
        except ValueError:
            return None
        return f"{self.path}.{name}" if _PLAIN_NAME.fullmatch(name) else f"{self.path}[{self.name}]"


def tree(body: bytes, *, address: str) -> Tree:
    """The body as a tree of at most ``MOST_NODES`` values.

    Args:
        address: of the page that lists the stream's messages.
    """
    text = body[: bodies.SHOWN_BYTES].decode("utf-8", "replace")
    top = _Level("", "")
    levels = [top]
    values = 0
    for token, following, _ in bodies.tokens(text):
        level = levels[-1]
        if token.startswith('"') and following == ":":
            level.name = token
        elif token in "{[":
            values += 1
            inner = _Level("}" if token == "{" else "]", _child_path(levels), label=_label(level))
            levels.append(inner)
        elif token in "}]":
            if len(levels) > 1:
                _close(levels, closed=True)
        elif token not in ":,":
            values += 1
            level.parts.append(_leaf(_label(level), token, _child_path(levels), address=address))
            level.count += 1
            level.values += 1
        if values >= MOST_NODES:
            break
    else:
        if len(levels) == 1 and len(body) <= bodies.SHOWN_BYTES:
            return Tree(mark_safe("".join(top.parts)), complete=True)
    while len(levels) > 1:
        _close(levels, closed=False)
    return Tree(mark_safe("".join(top.parts)), complete=False)


def _child_path(levels: list[_Level]) -> str | None:
    return levels[-1].child_path() if len(levels) > 1 else ""


def _label(level: _Level) -> str:
    if level.closing == "}" and level.name is not None:
        return f'<span class="json-name">{escape(bodies.readable_string(level.name)[1:-1])}</span>: '
    return f'<span class="faint">{level.count}</span>: ' if level.closing == "]" else ""


def _close(levels: list[_Level], *, closed: bool) -> None:
    """Write the innermost level into the one around it."""
    level = levels.pop()
    outer = levels[-1]
    if not level.count and closed:
        opening = "{" if level.closing == "}" else "["
        outer.parts.append(f"<div>{level.label}{opening}{level.closing}</div>")
    else:
        is_open = len(levels) == 1 or level.values <= OPEN_NODES // (2 ** len(levels))
        count = f"{level.count}{'' if closed else '+'}"
        shown = f"{{{count}}}" if level.closing == "}" else f"[{count}]"
        rest = "" if closed else '<div class="faint">…</div>'
        outer.parts.append(
            f'<details{" open" if is_open else ""}><summary>{level.label}<span class="faint">{shown}</span></summary>'
            f"<div>{''.join(level.parts)}{rest}</div></details>"
        )
    outer.count += 1
    outer.values += level.values + 1


def _leaf(label: str, token: str, path: str | None, *, address: str) -> str:
    kind, text = "literal", token
    if token.startswith('"'):
        kind, text = "string", bodies.readable_string(token)
    elif token[0] in "-0123456789":
        kind = "number"
    cut = len(text) > LONGEST_VALUE
    value = f'<span class="json-{kind}">{escape(text[:LONGEST_VALUE])}</span>{"…" if cut else ""}'
    if path is not None and len(path) + len(token) <= _LONGEST_SOUGHT:
        query = urlencode({"match": f"{path or '.'} = {token}"})
        value += f' <a class="like" href="{escape(f"{address}?{query}")}" title="{_LIKE}">=</a>'
    return f"<div>{label}{value}</div>"
