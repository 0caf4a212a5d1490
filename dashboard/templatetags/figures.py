"""Numbers in templates: painted by the server, then kept fresh by ``static/js/bind.js`` under the same names."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import template
from django.utils.html import escape, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

from dashboard import formats
from streams.models import Run

register = template.Library()

for _name, _format in formats.FORMATS.items():
    register.filter(_name, _format)


@register.simple_tag
def live(topic: str, field: str, value: Any, style: str) -> SafeString:
    """A value that the socket replaces: ``{% live row.topic "messages" row.messages "count" %}``."""
    exact = style in {"size", "size_rate"} and value is not None
    title = f' title="{escape(exact_size(value, style))}"' if exact else ""
    # By hand: a list has hundreds of them. Field and style are ours; a topic holds names, a rate may be "<0.01/s".
    return SafeString(
        f'<span data-live="{escape(topic)}" data-field="{field}" data-format="{style}"{title}>'
        f"{escape(formats.FORMATS[style](value))}</span>"
    )


@register.simple_tag
def ago(ms: int | None, topic: str = "", field: str = "") -> SafeString:
    """``3 s ago``, with the exact time on hover; grows older by itself, and follows the socket if it has a topic."""
    follows = f' data-live="{escape(topic)}" data-field="{field}" data-format="age"' if topic else ""
    if ms is None:
        return SafeString(f'<time data-age=""{follows}>{formats.age(None)}</time>')
    exact = f' datetime="{formats.iso(ms)}" data-ms="{ms}" title="{formats.moment(ms)}"'
    return SafeString(f'<time data-age=""{follows}{exact}>{formats.age(time.time() - ms / 1000)}</time>')


def exact_size(value: float, style: str) -> str:
    """What a rounded size is exactly."""
    text = "%(count)s bytes/s" if style == "size_rate" else "%(count)s bytes"
    return gettext(text) % {"count": formats.count(round(value))}


LIMITS = {
    "ttl": gettext_noop("the limit of age"),
    "max_messages": gettext_noop("the limit of messages"),
    "max_bytes": gettext_noop("the limit of bytes"),
}


@register.filter
def limit_words(name: str) -> str:
    """A limit of a stream, in a sentence."""
    return gettext(LIMITS.get(name, name))


@register.filter
def parted(parts: Sequence[str]) -> SafeString:
    """``7 d · 10.0 GiB``, which breaks over lines only between its parts."""
    return format_html_join(" · ", '<span class="nowrap">{}</span>', ((part,) for part in parts))


@register.filter
def unix_ms(moment: datetime | None) -> int | None:
    """A time as unix milliseconds."""
    return None if moment is None else int(moment.timestamp() * 1000)


@register.simple_tag
def took(run: Run) -> str:
    """How long a run took, or has been going."""
    if run.started_at is None:
        return formats.UNKNOWN
    ended = run.finished_at.timestamp() if run.finished_at else time.time()
    return formats.duration(ended - run.started_at.timestamp())
