"""What of a page stands still in a file: no script, no form, no address but of the server that it is from."""

import json
import re
from functools import cache
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from dashboard.snapshot.drawn import chart_drawn

STATIC = Path(__file__).resolve().parent.parent / "static"
STYLES = ("vendor/bootstrap/5.3.8/bootstrap.min.css", "css/tokens.css", "css/console.css")
VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
)
GONE = frozenset(
    [
        "script",
        "noscript",
        "style",
        "button",
        "dialog",
        "nav",
        "link",
        "meta",
        "template",
        "input",
        "select",
        "img",
    ]
)
"""With all that is in them."""
UNWRAPPED = frozenset({"form"})
"""What is in them stays. Of those that only ask for another page it does where they hold what they are about."""
SAVED, NOT_SAVED = "data-saved", "data-not-saved"
"""Attributes of such a form, and of what has no sense in a file."""
SEED = "data-seed"
"""An attribute of what a chart is drawn from, where a script cannot hold it."""
RENAMED = {"textarea": "pre"}
MOVES = ("hx-", "on", "data-live", "data-okmq", "data-copy")
"""How attributes begin that only do something."""
USED = re.compile(r"#([a-z0-9-]+)$")
SEEDS = re.compile(
    rf'<(script|div) id="([\w-]+)" (?:type="application/json"|{SEED} hidden)>(.*?)</\1>', re.DOTALL
)
SYMBOLS = re.compile(r'<symbol id="([a-z0-9-]+)".*?</symbol>', re.DOTALL)


@cache
def styles() -> str:
    """All style sheets of a page."""
    return "\n".join((STATIC / name).read_text("utf-8") for name in STYLES)


@cache
def symbols() -> dict[str, str]:
    """The icons by their names."""
    sprite = (STATIC / "img" / "icons.svg").read_text("utf-8")
    return {found[1]: found[0] for found in SYMBOLS.finditer(sprite)}


def frozen(page: str, *, address: str) -> "Frozen":
    """What is in a page's ``<main>``, standing still.

    Args:
        page: the whole page as it was rendered.
        address: its own, with scheme and host, which links are told from.
    """
    seeds = {name: json.loads(unescape(seed)) for _tag, name, seed in SEEDS.findall(page)}
    reader = Frozen(address=address, seeds=seeds)
    reader.feed(page)
    reader.close()
    return reader


class Frozen(HTMLParser):
    """Reads a page and writes down what is kept of it.

    Attributes:
        title: of the page.
        kept: the HTML of what is in ``<main>``.
        icons: the names of those that are in it.
    """

    def __init__(self, *, address: str, seeds: dict[str, Any]) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.icons: set[str] = set()
        self._address, self._seeds = address, seeds
        self._parts: list[str] = []
        self._is_in_title = self._is_in_main = False
        self._gone, self._gone_depth = "", 0
        """The element that is being left out, and how many of its name are open."""

    @property
    def kept(self) -> str:
        return "".join(self._parts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element, or begin to leave one out."""
        if self._gone:
            self._gone_depth += tag == self._gone
        elif tag == "title" and not self._is_in_main:
            self._is_in_title = True
        elif tag == "main":
            self._is_in_main = True
        elif self._is_in_main:
            self._open(tag, dict(attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element of SVG that has nothing in it."""
        if self._is_in_main and not self._gone and tag not in GONE:
            self._parts.append(self._tag(tag, dict(attrs), end="/>"))

    def handle_endtag(self, tag: str) -> None:
        """Close an element, or end leaving one out."""
        if self._gone:
            self._gone_depth -= tag == self._gone
            if not self._gone_depth:
                self._gone = ""
        elif tag == "title" and not self._is_in_main:
            self._is_in_title = False
        elif tag == "main":
            self._is_in_main = False
        elif self._is_in_main and tag not in UNWRAPPED and tag not in GONE:
            self._parts.append(f"</{RENAMED.get(tag, tag)}>")

    def handle_data(self, data: str) -> None:
        """Text, which stays text."""
        if self._is_in_title:
            self.title += data
        elif self._is_in_main and not self._gone:
            self._parts.append(escape(data, quote=False))

    def _open(self, tag: str, attrs: dict[str, str | None]) -> None:
        only_asks = tag == "form" and attrs.get("method") != "post" and SAVED not in attrs
        if tag in GONE or only_asks or NOT_SAVED in attrs or SEED in attrs:
            if tag not in VOID:
                self._gone, self._gone_depth = tag, 1
        elif tag not in UNWRAPPED:
            self._parts.append(self._tag(tag, attrs))
            if "data-chart" in attrs:
                self._parts.append(self._chart(attrs))

    def _tag(self, tag: str, attrs: dict[str, str | None], *, end: str = ">") -> str:
        if tag == "details":
            attrs["open"] = None
        kept = {name: value for name, value in attrs.items() if not name.startswith(MOVES)}
        for name in ("href", "xlink:href"):
            if name in kept:
                kept[name] = self._leads_to(tag, kept[name] or "")
        written = [name if value is None else f'{name}="{escape(value)}"' for name, value in kept.items()]
        return f"<{' '.join([RENAMED.get(tag, tag), *written])}{end}"

    def _leads_to(self, tag: str, address: str) -> str:
        if tag != "use":
            return address if address.startswith("#") else urljoin(self._address, address)
        found = USED.search(address)
        if found is None or found[1] not in symbols():
            return "#"
        self.icons.add(found[1])
        return f"#{found[1]}"

    def _chart(self, attrs: dict[str, str | None]) -> str:
        chart = {name.removeprefix("data-"): value for name, value in attrs.items()}
        seed = self._seeds.get(attrs["data-chart"] or "")
        return chart_drawn(seed, chart | {"label": attrs.get("aria-label")}) if seed else ""
