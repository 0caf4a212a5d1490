"""Small pictures as inline SVG: icons, sparklines, meters. They print, and they need no script."""

from collections.abc import Sequence
from functools import cache

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from dashboard import formats

register = template.Library()

SPARK_WIDTH = 80
SPARK_HEIGHT = 20
SPARK_POINTS = 60


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """One symbol of the sprite; without a label it is decoration, and hidden from screen readers."""
    reference = f"{_sprite()}#{name}"
    if label:
        return format_html(
            '<svg class="icon" role="img" aria-label="{}"><use href="{}"></use></svg>', label, reference
        )
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}"></use></svg>', reference)


@cache
def _sprite() -> str:
    """Its address, which is asked for hundreds of times a page and stays while the process does."""
    return static("img/icons.svg")


def spark_points(values: Sequence[float]) -> str:
    """The polyline of the last values, newest at the right edge; ``static/js/bind.js`` draws the same."""
    shown = list(values)[-SPARK_POINTS:]
    peak = max([*shown, 0.000001])
    step = SPARK_WIDTH / (SPARK_POINTS - 1)
    left = SPARK_WIDTH - step * (len(shown) - 1)
    return " ".join(
        f"{left + step * index:.1f},{SPARK_HEIGHT - 1 - value / peak * (SPARK_HEIGHT - 2):.1f}"
        for index, value in enumerate(shown)
    )


@register.simple_tag
def sparkline(values: Sequence[float], topic: str) -> SafeString:
    """The rate of the last minute, one point a second; a screen reader hears its peak."""
    shown = list(values)[-SPARK_POINTS:]
    label = _("last minute, max %(rate)s") % {"rate": formats.rate(max(shown, default=0.0))}
    return format_html(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}" data-spark="{}" data-values="{}">'
        '<polyline fill="none" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round" points="{}"/></svg>',
        SPARK_WIDTH,
        SPARK_HEIGHT,
        label,
        topic,
        " ".join(f"{value:g}" for value in shown),
        spark_points(shown),
    )


@register.simple_tag
def lag_line(values: Sequence[int]) -> SafeString:
    """The lag at each look of the last minutes; a screen reader hears where it went. Nothing until there are two."""
    if len(values) < 2:
        return SafeString("")
    peak = max([*values, 1])
    step = SPARK_WIDTH / (len(values) - 1)
    points = " ".join(
        f"{step * index:.1f},{SPARK_HEIGHT - 1 - value / peak * (SPARK_HEIGHT - 2):.1f}"
        for index, value in enumerate(values)
    )
    label = _("lag from %(first)s to %(last)s in the last minutes") % {
        "first": formats.count(values[0]),
        "last": formats.count(values[-1]),
    }
    return format_html(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>'
        '<polyline fill="none" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round" points="{}"/></svg>',
        SPARK_WIDTH,
        SPARK_HEIGHT,
        label,
        label,
        points,
    )


@register.simple_tag
def meter(fraction: float | None, warns: bool) -> SafeString:
    """A thin bar, full at 1; amber where it warns. The number stands beside it, so it is hidden from screen readers."""
    if fraction is None:
        return SafeString("")
    return format_html(
        '<svg class="meter" data-state="{}" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect width="{}" height="4"/></svg>',
        "warn" if warns else "ok",
        f"{min(1.0, max(0.0, fraction)) * 100:.1f}",
    )
