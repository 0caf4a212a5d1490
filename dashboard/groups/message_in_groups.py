"""How the groups stand to one message, a sentence each."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats
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
    def sentence(self) -> str:
        """What that means for this message."""
        standing = self.standing
        match standing.state:
            case "dead_letter":
                deliveries = ngettext("%(count)s delivery", "%(count)s deliveries", standing.deliveries)
                return _("%(deliveries)s; %(reason)s") % {
                    "deliveries": deliveries % {"count": formats.count(standing.deliveries)},
                    "reason": reason_in_words(standing.reason),
                }
            case "in_flight":
                return self._out()
            case "held_back":
                return _("An earlier message of its key is in flight.")
            case "to_come":
                if not standing.before:
                    return _("It is the next one.")
                before = ngettext(
                    "%(count)s message before it", "%(count)s messages before it", standing.before
                )
                return before % {"count": formats.count(standing.before)}
            case "filtered":
                return _("Its key matches none of the group's patterns.")
            case _:
                return _("Acknowledged, or the group began after it or was sought past it.")

    def _out(self) -> str:
        standing = self.standing
        if standing.due_in_ms:
            again = _("delivered again in %(time)s unless settled") % {
                "time": formats.duration(standing.due_in_ms / 1000)
            }
        else:
            again = _("delivered again at the next fetch")
        if not standing.deliveries:
            return _("Given back; %(again)s.") % {"again": again}
        most = self.group.max_deliver
        number = formats.count(standing.deliveries)
        if most > 0:
            number = _("%(number)s of %(most)s") % {"number": number, "most": formats.count(most)}
        values = {"number": number, "consumer": standing.consumer, "again": again}
        if standing.consumer:
            return _("Delivery %(number)s, to %(consumer)s; %(again)s.") % values
        return _("Delivery %(number)s, to an unnamed consumer; %(again)s.") % values


def in_groups(found: Sequence[MessageInGroup]) -> list[InGroup]:
    """Those that a page shows: what somebody may have to do something about comes first."""
    return [InGroup(each) for each in found[:MOST_SHOWN]]
