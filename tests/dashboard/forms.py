"""What a form of a page sends back."""

import re
from html import unescape
from typing import Any

HIDDEN = re.compile(r'<input type="hidden" name="((?:seen_|losing)\w*)" value="([^"]*)">')


def sent_back(page: Any) -> dict[str, list[str]]:
    """What a page tells, in hidden fields, that it has shown: by name, in order."""
    sent: dict[str, list[str]] = {}
    for name, value in HIDDEN.findall(page.content.decode()):
        sent.setdefault(name, []).append(unescape(value))
    return sent
