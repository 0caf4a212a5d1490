"""What an alert says, in the language of who reads it: the figure that a rule watches, and when that fires."""

from django.utils.translation import gettext as _

from streams import durations
from streams.alarms import FALLS
from streams.health import Verdict
from streams.models import AlertRule

IN_SECONDS = {"lag_seconds", "no_consumer", "retention_edge"}
PER_SECOND = {"rate_above", "rate_below"}


def figure_of(rule: AlertRule, value: float) -> str:
    """A value as the rule's watch has it: ``5,200``, ``1 min 57 s``, ``0.25/s``."""
    if rule.watch in IN_SECONDS:
        is_short = value < durations.MINUTE and not value.is_integer()
        return f"{value:.3g} s" if is_short else durations.written(value)
    figure = f"{value:,.0f}" if value.is_integer() or value >= 100 else f"{value:.3g}"
    return f"{figure}/s" if rule.watch in PER_SECOND else figure


def sentence_of(rule: AlertRule, stream: str, group: str, value: float) -> str:
    """What a rule with a limit says of a value: ``Group billing of orders: lag 5,200, fires above 1,000.``"""
    who = {"stream": stream, "group": group}
    words = {
        "who": (_("Group %(group)s of %(stream)s") if group else _("Stream %(stream)s")) % who,
        "what": _what(rule) % {"figure": figure_of(rule, value)},
        "limit": figure_of(rule, rule.limit or 0.0),
    }
    if rule.watch in FALLS:
        return _("%(who)s: %(what)s, fires below %(limit)s.") % words
    return _("%(who)s: %(what)s, fires above %(limit)s.") % words


def sentence_of_status(stream: str, group: str, verdict: Verdict) -> str:
    """What a rule on statuses says: ``Group billing of orders is stalled: …``"""
    words = {"group": group, "stream": stream, "status": verdict.status, "reason": verdict.reason}
    return _("Group %(group)s of %(stream)s is %(status)s: %(reason)s") % words


def _what(rule: AlertRule) -> str:
    match rule.watch:
        case "lag":
            return _("lag %(figure)s")
        case "lag_seconds":
            return _("time lag %(figure)s")
        case "no_consumer":
            return _("no consumer for %(figure)s")
        case "retention_edge":
            return _("oldest removed by retention in %(figure)s")
        case "dead_letters":
            return _("dead letters %(figure)s")
        case _:
            return _("rate %(figure)s")
