"""The volume of a stream over time as inline SVG: it prints, needs no script, and has a table beside it."""

from typing import Any
from urllib.parse import urlencode

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from dashboard import formats
from dashboard.timelines import Bar, Timeline

register = template.Library()

WIDTH, HEIGHT = 720, 40
KEPT = ("key", "header", "match", "cols")
"""What of the page's query goes with a chosen span: the filters, and the columns."""


def _address(request: Any, query: dict[str, str]) -> str:
    kept = {name: request.GET[name] for name in KEPT if request.GET.get(name)}
    return f"?{urlencode(kept | query)}"


@register.simple_tag(takes_context=True)
def span_address(context: dict[str, Any], bar: Bar) -> str:
    """The address that shows the messages of a bar."""
    return _address(context["request"], bar.query)


@register.simple_tag(takes_context=True)
def timeline_picture(context: dict[str, Any], timeline: Timeline) -> SafeString:
    """The bars, each a link to its messages, and the marks. Screen readers are given the table instead."""
    wide = WIDTH / len(timeline.bars)
    bars = format_html_join(
        "",
        '<a href="{}" tabindex="-1" data-from="{}" data-until="{}"><title>{}</title>'
        '<rect class="reach" x="{}" width="{}" height="{}"/>'
        '<rect class="bar" x="{}" y="{}" width="{}" height="{}"/></a>',
        (
            (
                _address(context["request"], bar.query),
                bar.query["at"],
                bar.query["until"],
                f"{formats.count(bar.count)}, {formats.moment(bar.start_ms)}",
                f"{place * wide:.2f}",
                f"{wide:.2f}",
                HEIGHT,
                f"{place * wide + wide * 0.08:.2f}",
                f"{HEIGHT - _height(bar.count, timeline.peak):.1f}",
                f"{wide * 0.84:.2f}",
                f"{_height(bar.count, timeline.peak):.1f}",
            )
            for place, bar in enumerate(timeline.bars)
        ),
    )
    marks = format_html_join(
        "",
        '<line class="mark" data-kind="{}" x1="{}" x2="{}" y1="0" y2="{}"><title>{}</title></line>',
        (
            (mark.kind, f"{mark.at * WIDTH:.2f}", f"{mark.at * WIDTH:.2f}", HEIGHT, mark.text)
            for mark in timeline.marks
        ),
    )
    return format_html(
        '<svg class="timeline" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true" data-brush="{}">'
        '{}{}<rect class="brush" height="{}" hidden/></svg>',
        WIDTH,
        HEIGHT,
        _address(context["request"], {"start": "time"}),
        bars,
        marks,
        HEIGHT,
    )


@register.simple_tag
def timeline_summary(timeline: Timeline) -> str:
    """What the picture shows, in a sentence."""
    busiest = max(timeline.bars, key=lambda bar: bar.count)
    return _("%(total)s; at most %(peak)s in %(step)s, from %(when)s.") % {
        "total": formats.messages(timeline.total),
        "peak": formats.count(timeline.peak),
        "step": timeline.step,
        "when": formats.moment(busiest.start_ms),
    }


def _height(count: int, peak: int) -> float:
    """A bar's height; a single message among millions is still seen."""
    return max(1.5, count / peak * (HEIGHT - 4)) if count else 0.0
