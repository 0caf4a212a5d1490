"""What a form of a page sends back."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

from django.test import Client

HIDDEN = re.compile(r'<input type="hidden" name="(of|opened|(?:seen_|losing)\w*)" value="([^"]*)">')


def sent_back(page: Any) -> dict[str, list[str]]:
    """What a page tells, in hidden fields, that it has shown and of which stream: by name, in order."""
    sent: dict[str, list[str]] = {}
    for name, value in HIDDEN.findall(page.content.decode()):
        sent.setdefault(name, []).append(unescape(value))
    return sent


def confirmed(client: Client, address: str, form: Mapping[str, object], **typed: str) -> Any:
    """The answer to a deed that was previewed and agreed to, with what was typed for it."""
    page = client.post(address, form)
    return client.post(address, {**form, **sent_back(page), **typed})
