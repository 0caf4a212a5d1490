"""Why a text that somebody typed is no JSON, in the language of the page: Python's parser says it in English alone."""

import json

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

FAULTS = {
    "Expecting value": gettext_lazy("a value is expected"),
    "Expecting property name enclosed in double quotes": gettext_lazy("a name in double quotes is expected"),
    "Expecting ':' delimiter": gettext_lazy("a colon is expected"),
    "Expecting ',' delimiter": gettext_lazy("a comma is expected, or the end of the object or array"),
    "Extra data": gettext_lazy("the value ends before this"),
    "Unterminated string starting at": gettext_lazy("the string that begins here has no end"),
    "Invalid control character at": gettext_lazy(
        "a string holds no line break or other control character; \\n stands for a line break"
    ),
    "Invalid \\escape": gettext_lazy("no character is escaped like this; \\\\ stands for a backslash"),
    "Invalid \\uXXXX escape": gettext_lazy("\\u is followed by four hexadecimal digits"),
    "Unexpected UTF-8 BOM (decode using utf-8-sig)": gettext_lazy("it begins with a byte order mark"),
}
"""By the message of ``json.JSONDecodeError``."""


def sentence(error: json.JSONDecodeError) -> str:
    """Where it is wrong, and why; in the words of Python where these are unknown here."""
    return _("Line %(line)s, column %(column)s: %(what)s.") % {
        "line": error.lineno,
        "column": error.colno,
        "what": FAULTS.get(error.msg, error.msg),
    }
