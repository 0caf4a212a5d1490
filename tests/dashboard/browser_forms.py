"""What a browser sends of a form that nobody touched, by the rules of HTML: read from the page, as it reads it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

FLOAT = re.compile(r"-?(\d+(\.\d+)?|\.\d+)([eE][+-]?\d+)?")
"""HTML's valid floating-point number: a field for numbers shows nothing else."""


@dataclass
class Control:
    """One control of a form with what is in it, as the page has it."""

    tag: str
    attrs: dict[str, str | None]
    text: str = ""
    options: list[tuple[dict[str, str | None], str]] = field(default_factory=list)


class _Reader(HTMLParser):
    """Controls of the form that carries ``opened``."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[list[Control]] = []
        self.is_open = False
        self.in_text = False
        self.fieldsets: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        if tag == "form":
            self.forms.append([])
            self.is_open = True
        elif tag == "fieldset":
            self.fieldsets.append("disabled" in held)
        elif tag in {"input", "select", "textarea"} and self.is_open:
            if any(self.fieldsets):
                held["disabled"] = None
            self.forms[-1].append(Control(tag, held))
            self.in_text = tag == "textarea"
        elif tag == "option" and self.is_open:
            self.forms[-1][-1].options.append((held, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.is_open = False
        elif tag == "textarea":
            self.in_text = False
        elif tag == "fieldset":
            self.fieldsets.pop()

    def handle_data(self, data: str) -> None:
        if self.in_text:
            self.forms[-1][-1].text += data


def untouched(page: Any) -> dict[str, list[str]]:
    """What is sent of the form of settings on a page.

    Raises:
        AssertionError: a browser would not send it, and say so beside a field.
    """
    reader = _Reader()
    # The first thing that a browser does with a page is to make every line end LF.
    reader.feed(page.content.decode().replace("\r\n", "\n").replace("\r", "\n"))
    [controls] = [form for form in reader.forms if any(each.attrs.get("name") == "opened" for each in form)]
    sent: dict[str, list[str]] = {}
    for control in controls:
        name = control.attrs.get("name")
        if name and "disabled" not in control.attrs:
            for value in _values(control):
                sent.setdefault(name, []).append(value.replace("\n", "\r\n"))
    return sent


def _values(control: Control) -> Iterator[str]:
    attrs = control.attrs
    if control.tag == "textarea":
        yield control.text.removeprefix("\n")
    elif control.tag == "select":
        chosen = [held for held, _ in control.options if "selected" in held] or [control.options[0][0]]
        yield chosen[-1]["value"] or ""
    elif attrs.get("type") == "checkbox":
        if "checked" in attrs:
            yield attrs.get("value") or "on"
    elif attrs.get("type") == "hidden":
        yield attrs.get("value") or ""
    else:
        yield _line(attrs)


def _line(attrs: dict[str, str | None]) -> str:
    """What a field of one line holds: without line ends; a number, or nothing."""
    text = (attrs.get("value") or "").replace("\n", "")
    if attrs["type"] == "email":
        text = text.strip(" \t\n\f\r")
    assert text or "required" not in attrs, f"{attrs['name']} is empty"
    if attrs["type"] == "number":
        text = text if FLOAT.fullmatch(text) else ""
        if text:
            assert float(attrs.get("min") or "-inf") <= float(text) <= float(attrs.get("max") or "inf"), attrs
            assert attrs.get("step") == "any" or float(text).is_integer(), attrs
    return text
