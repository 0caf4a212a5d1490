"""What an alert rule found: figures that the worker keeps, and the sentence in the language of who reads it."""

import msgspec
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from streams import durations
from streams.reasons import Reason

IN_SECONDS = frozenset({"lag_seconds", "no_consumer", "retention_edge"})
PER_SECOND = frozenset({"rate_above", "rate_below"})
FIGURES = {
    "lag": gettext_lazy("lag %(value)s"),
    "lag_seconds": gettext_lazy("time lag %(value)s"),
    "no_consumer": gettext_lazy("no consumer for %(value)s"),
    "retention_edge": gettext_lazy("oldest removed by retention in %(value)s"),
    "dead_letters": gettext_lazy("dead letters %(value)s"),
    "rate_above": gettext_lazy("rate %(value)s"),
    "rate_below": gettext_lazy("rate %(value)s"),
}


class OverLimit(msgspec.Struct, frozen=True, kw_only=True, tag="over limit"):
    """A value that was past its limit, and is not yet beyond ``clear``.

    Attributes:
        stream, group: names; without a group it is about the stream.
        watch: as ``streams.alarms.Watch``, with ``value``, ``limit`` and ``clear`` in its unit.
        falls: it is bad below the limit.
    """

    stream: str
    group: str
    watch: str
    value: float
    limit: float
    clear: float
    falls: bool

    def words(self) -> str:
        """``Group billing of orders: lag 5,200, above 1,000.``"""
        said = {"who": self._who(), "figure": self.figure()}
        if self.value < self.limit if self.falls else self.value > self.limit:
            side = (
                _("%(who)s: %(figure)s, below %(limit)s.")
                if self.falls
                else _("%(who)s: %(figure)s, above %(limit)s.")
            )
            return side % (said | {"limit": self._measure(self.limit)})
        return _("%(who)s: %(figure)s; resolved at %(clear)s.") % (
            said | {"clear": self._measure(self.clear)}
        )

    def figure(self) -> str:
        """``lag 5,200``"""
        return str(FIGURES[self.watch]) % {"value": self._measure(self.value)}

    def _who(self) -> str:
        if self.group:
            return _("Group %(group)s of %(stream)s") % {"group": self.group, "stream": self.stream}
        return _("Stream %(stream)s") % {"stream": self.stream}

    def _measure(self, value: float) -> str:
        if self.watch in IN_SECONDS:
            is_short = value < durations.MINUTE and value % 1 != 0
            return _("%(count)s s") % {"count": f"{value:.3g}"} if is_short else durations.written(value)
        count = _count(value)
        return _("%(count)s/s") % {"count": count} if self.watch in PER_SECOND else count


class InStatus(msgspec.Struct, frozen=True, kw_only=True, tag="in status"):
    """A group has one of the rule's statuses.

    Attributes:
        text: the reason in the language of the worker, for where ``why`` is None.
    """

    stream: str
    group: str
    status: str
    text: str
    why: Reason | None = None

    def words(self) -> str:
        """``Group billing of orders is stopped: No consumers: …``"""
        return _("Group %(group)s of %(stream)s is %(status)s: %(reason)s") % {
            "group": self.group,
            "stream": self.stream,
            "status": self.figure(),
            "reason": self.text if self.why is None else self.why.words(),
        }

    def figure(self) -> str:
        """``stopped``"""
        return self.status


Finding = OverLimit | InStatus


def kept(finding: Finding) -> str:
    """As it is kept: JSON."""
    return msgspec.json.encode(finding).decode()


def found(text: str) -> Finding | None:
    """What was kept; None where nothing was, or what only another version knows."""
    try:
        return msgspec.json.decode(text, type=Finding) if text else None
    except msgspec.ValidationError:
        return None


def _count(value: float) -> str:
    """Whole numbers with every digit, others with three."""
    return f"{value:,.0f}" if value % 1 == 0 or value >= 100 else f"{value:.3g}"
