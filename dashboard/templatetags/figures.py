"""Numbers in templates: painted by the server, then kept fresh by ``static/js/bind.js`` under the same names."""

import re
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import template
from django.utils.html import escape, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

from dashboard import formats
from dashboard.browse import bodies
from dashboard.history.run_results import did
from dashboard.stream_rows import StreamRow
from streams import durations, moments, naming
from streams.models import AlertRule, Run
from streams.upkeep import processes

register = template.Library()

for _name, _format in formats.FORMATS.items():
    register.filter(_name, _format)
register.filter("in_messages", formats.messages)
register.filter("foreseen", formats.foreseen)
register.filter("share", formats.share)
register.filter("exact_duration", durations.exactly)
register.filter("minute", formats.minute)
register.filter("offset", formats.offset)
register.filter("version", processes.version)
register.filter("shortened", naming.shortened)


@register.filter
def visible(text: object) -> str:
    """What somebody else wrote, with every character that could deceive the eye written out."""
    return bodies.visible(str(text))


register.simple_tag(did)


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
def used(row: StreamRow) -> SafeString:
    """How much of its tightest countable limit a stream uses, which follows the socket."""
    stream = row.stream
    most = (("messages", stream.max_messages), ("bytes", stream.max_bytes))
    limits = "".join(f' data-of-{name}="{limit}"' for name, limit in most if limit is not None)
    return SafeString(
        f'<span data-live="{escape(row.topic)}" data-field="used" data-format="percent"{limits}>'
        f"{formats.percent(row.retention.used)}</span>"
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
    "ttl": gettext_noop("max age"),
    "max_messages": gettext_noop("max messages"),
    "max_bytes": gettext_noop("max size"),
}


@register.filter
def limit_words(name: str) -> str:
    """A limit of a stream, in a sentence."""
    return gettext(LIMITS.get(name, name))


CONDITIONS = {
    "status": gettext_noop("status is %(value)s"),
    "lag": gettext_noop("lag above %(value)s"),
    "lag_seconds": gettext_noop("time lag above %(value)s"),
    "no_consumer": gettext_noop("no consumer for longer than %(value)s"),
    "retention_edge": gettext_noop("retention edge nearer than %(value)s"),
    "dead_letters": gettext_noop("dead letters above %(value)s"),
    "rate_above": gettext_noop("published above %(value)s/s"),
    "rate_below": gettext_noop("published below %(value)s/s"),
}
IN_SECONDS = {"lag_seconds", "no_consumer", "retention_edge"}


@register.filter
def condition(rule: AlertRule) -> str:
    """When an alert rule fires: ``lag above 1,000``."""
    limit = rule.limit or 0.0
    is_whole = limit.is_integer()
    if rule.watch == "status":
        value = gettext(" or ").join(rule.statuses)
    elif rule.watch in IN_SECONDS:
        value = durations.exactly(int(limit)) if is_whole else f"{limit:.12g} s"
    else:
        value = formats.count(int(limit)) if is_whole else f"{limit:,.12g}"
    return gettext(CONDITIONS[rule.watch]) % {"value": value}


BREAKS = re.compile(r"([._-])(?=.)")


@register.filter
def parted(parts: Sequence[str]) -> SafeString:
    """``7 d · 10.0 GiB``, which breaks over lines only between its parts."""
    return format_html_join(" · ", '<span class="nowrap">{}</span>', ((part,) for part in parts))


@register.filter
def breakable(name: str) -> SafeString:
    """A name that breaks over lines after its dots, dashes and underscores only."""
    return SafeString(BREAKS.sub(r"\1<wbr>", escape(name)))


@register.filter
def unix_ms(moment: datetime | None) -> int | None:
    """A time as unix milliseconds."""
    return None if moment is None else moments.unix_ms(moment)


@register.simple_tag
def took(run: Run) -> str:
    """How long a run took, or has been going."""
    if run.started_at is None:
        return formats.UNKNOWN
    ended = run.finished_at.timestamp() if run.finished_at else time.time()
    return formats.duration(ended - run.started_at.timestamp())
