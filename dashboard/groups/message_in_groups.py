"""How the groups stand to one message, a sentence each."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats
from dashboard.browse import bodies
from streams.log.message_groups import Standing, State
from streams.models import Group
from streams.selectors import MessageInGroup, reason_in_words

DOTS: dict[State, str] = {
    "dead_letter": "bad",
    "in_flight": "out",
    "held_back": "warn",
    "to_come": "empty",
    "passed": "active",
    "filtered": "empty",
}
"""How a state looks; the word always stands beside the dot."""

MOST_SHOWN = 100


@dataclass(frozen=True)
class InGroup:
    """One group on the page of a message."""

    found: MessageInGroup

    @property
    def group(self) -> Group:
        return self.found.group

    @property
    def standing(self) -> Standing:
        return self.found.standing

    @property
    def dot(self) -> str:
        return DOTS[self.standing.state]

    @property
    def word(self) -> str:
        return {
            "dead_letter": _("dead letter"),
            "in_flight": _("in flight"),
            "held_back": _("held back"),
            "to_come": _("not delivered yet"),
            "passed": _("passed"),
            "filtered": _("filtered out"),
        }[self.standing.state]

    @property
    def sentence(self) -> SafeString:
        """What that means for this message; what a consumer gave is set apart from our own words."""
        standing = self.standing
        match standing.state:
            case "dead_letter":
                return format_html("{}; {}", self._deliveries(), _theirs(reason_in_words(standing.reason)))
            case "in_flight":
                return self._out()
            case "held_back":
                said = _("An earlier message of its key is in flight.")
            case "to_come" if standing.before:
                said = ngettext(
                    "%(count)s message before it", "%(count)s messages before it", standing.before
                ) % {"count": formats.count(standing.before)}
            case "to_come":
                said = _("It is the next one.")
            case "filtered":
                said = _("Its key matches none of the group's patterns.")
            case _:
                said = _("Acknowledged, or the group began after it or was sought past it.")
        return conditional_escape(said)

    def _deliveries(self) -> str:
        count = self.standing.deliveries
        return ngettext("%(count)s delivery", "%(count)s deliveries", count) % {"count": formats.count(count)}

    def _out(self) -> SafeString:
        standing = self.standing
        then = _("dead letter") if standing.is_last else _("delivered again")
        if standing.due_in_ms:
            time = formats.duration(standing.due_in_ms / 1000)
            after = _("%(then)s in %(time)s unless settled") % {"then": then, "time": time}
        elif standing.is_last:
            after = _("dead letter at the next fetch")
        else:
            after = _("delivered again at the next fetch")
        if not standing.deliveries:
            return format_html(_("Given back or replayed; {after}."), after=after)
        most = self.group.max_deliver
        number = formats.count(standing.deliveries)
        if most > 0:
            number = _("%(number)s of %(most)s") % {"number": number, "most": formats.count(most)}
        if standing.consumer:
            return format_html(
                _("Delivery {number}, to {consumer}; {after}."),
                number=number,
                consumer=_theirs(standing.consumer),
                after=after,
            )
        return format_html(
            _("Delivery {number}, to an unnamed consumer; {after}."), number=number, after=after
        )


def _theirs(text: str) -> SafeString:
    return format_html("<bdi>{}</bdi>", bodies.visible(text))


def in_groups(found: Sequence[MessageInGroup]) -> list[InGroup]:
    """Those that a page shows: what somebody may have to do something about comes first."""
    return [InGroup(each) for each in found[:MOST_SHOWN]]
