"""The members of a group as its page shows them."""

from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from streams import selectors
from streams.selectors import GroupView, Member

LOOKS = {gettext_noop("active"): "good", gettext_noop("idle"): "", gettext_noop("silent"): "warn"}
TOLD = {
    "active": _("It has messages in flight."),
    "idle": _("It has nothing in flight, and fetched or responded within the last minute."),
    "silent": _(
        "It has messages in flight, and has neither fetched nor responded for longer than a delivery lasts."
    ),
}


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One consumer; ``again``: of what it has in flight, how much went out more than once."""

    member: Member
    again: int

    @property
    def look(self) -> str:
        return LOOKS[self.member.state]

    @property
    def told(self) -> str:
        return str(TOLD[self.member.state])


@dataclass(frozen=True, slots=True)
class Members:
    """All of them; what went out more than once is counted to some bound, which ``is_complete`` is about."""

    rows: list[MemberRow]
    is_complete: bool


def members_of(view: GroupView) -> Members:
    """Who works for a group now."""
    again = selectors.delivered_again(view) if view.members else None
    counted = again.by_consumer if again else {}
    rows = [MemberRow(member, counted.get(member.name, 0)) for member in view.members]
    return Members(rows, again is None or again.is_complete)
