"""What other settings of a group, or a new group, would take away: counted before it is so.

Only three do: another filter, where messages are kept by interest; fewer deliveries, which make dead letters of what is
in flight; and an end that the group did not have, or has sooner.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from streams import store
from streams.log import pending
from streams.log.patterns import lets
from streams.log.preview import WITHIN_S, Preview
from streams.models import Group, Stream
from streams.models.stream import Retention
from streams.selectors.groups import GroupView, spent_by
from streams.selectors.retention import retention_preview

MANY_IN_FLIGHT = "too_many_in_flight"
"""Why it is not complete: more messages are in flight than are looked at."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A group that would be deleted by itself, or sooner.

    Attributes:
        after_s: once nobody has fetched from it for so long.
        idle_s: for so long nobody has.
        in_flight, dead_letters: that go with it, as of now.
        by_interest: whether messages may go with it.
        messages: that do, beyond those that go at once.
        reason: why more may, as of ``Preview.reason``; None where all were looked at.
    """

    after_s: float
    idle_s: float
    in_flight: int
    dead_letters: int
    by_interest: bool = False
    messages: int = 0
    reason: str | None = None

    @property
    def is_due(self) -> bool:
        return self.idle_s >= self.after_s

    @property
    def is_complete(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class GroupEffect:
    """What would be taken away.

    Attributes:
        going: what goes by interest at once; None where nothing can.
        dying: how many messages in flight become dead letters, unless they are answered in time; what goes at once
            by interest does not.
        all_looked_at: whether all that are in flight were looked at for it.
        ending: where it would be deleted by itself; None where it would not, or no sooner than as it is.
    """

    going: Preview | None = None
    dying: int = 0
    all_looked_at: bool = True
    ending: Ending | None = None

    @property
    def reason(self) -> str | None:
        """Why not everything was counted and more may go: as of ``Preview.reason``, or ``MANY_IN_FLIGHT``."""
        of_going = self.going.reason if self.going else None
        of_ending = self.ending.reason if self.ending else None
        return of_going or of_ending or (None if self.all_looked_at else MANY_IN_FLIGHT)

    @property
    def is_complete(self) -> bool:
        return self.reason is None

    @property
    def takes_something(self) -> bool:
        """Whether anything goes, as far as is known."""
        return bool((self.going and self.going.messages) or self.dying or self.ending or not self.is_complete)


def group_effect_of_new(planned: Group, *, within_s: float | None = None) -> GroupEffect:
    """What making a group would take away; ``within_s`` as of ``retention_preview``."""
    return GroupEffect(_going(planned, within_s=within_s))


def group_effect_of_change(view: GroupView, changed: Group, *, within_s: float | None = None) -> GroupEffect:
    """What a group would take away if it were as ``changed``; ``within_s`` as of ``retention_preview``."""
    held, stream, began_s = view.group, changed.stream, time.monotonic()
    spent = _spent(view, changed)
    unwanted = _unwanted(changed, spent)
    is_filtered = changed.filter_keys != held.filter_keys
    told = _going(changed, among=unwanted, within_s=within_s) if is_filtered or unwanted else None
    going = told if is_filtered else None
    effect = _at_hand(view, changed, spent, told)
    if effect.ending is None or stream.retention != Retention.INTEREST:
        return replace(effect, going=going)
    at_once = going.messages if going else 0
    left_s = None if within_s is None else max(WITHIN_S, within_s - (time.monotonic() - began_s))
    ending = ending_by_interest(effect.ending, stream, [held], at_once=at_once, within_s=left_s)
    return replace(effect, going=going, ending=ending)


def group_effect_at_hand(view: GroupView, changed: Group, *, within_s: float | None = None) -> GroupEffect:
    """As ``group_effect_of_change``, of what the group itself has: nothing of the stream's messages."""
    spent = _spent(view, changed)
    unwanted = _unwanted(changed, spent)
    told = _going(changed, among=unwanted, within_s=within_s) if unwanted else None
    return _at_hand(view, changed, spent, told)


def ending_by_interest(
    ending: Ending,
    stream: Stream,
    groups: Collection[Group],
    *,
    at_once: int,
    within_s: float | None = None,
) -> Ending:
    """With what goes by interest once these groups are deleted, in whatever order they are.

    Args:
        stream, at_once: as it would be, and how many messages go of it at once.
        within_s: how long to look at messages in all; None as of ``retention_preview``.
    """
    stay = any(group not in groups for group in stream.groups.all())
    # The last group of all lets nothing go, and nobody knows which will be the last.
    cases = [list(groups)] if stay else [[group for group in groups if group != last] for last in groups]
    each_s = None if within_s is None else within_s / max(1, len(cases))
    found = [retention_preview(stream, {}, without=case, within_s=each_s) for case in cases if case]
    most = max((told.messages for told in found), default=0)
    reasons = [told.reason for told in found if told.reason]
    return replace(
        ending, by_interest=True, messages=max(0, most - at_once), reason=min(reasons, default=None)
    )


def _going(group: Group, *, among: Sequence[int] = (), within_s: float | None) -> Preview | None:
    """What goes at once by a group, in the place of the one that has its name; others as of ``retention_preview``."""
    if group.stream.retention != Retention.INTEREST:
        return None
    return retention_preview(group.stream, {}, instead=group, among=among, within_s=within_s)


def _spent(view: GroupView, changed: Group) -> pending.Spent:
    if not view.state.ack_pending:
        return pending.Spent({}, True)
    return spent_by(view.group, max_deliver=changed.max_deliver)


def _unwanted(group: Group, spent: pending.Spent) -> list[int]:
    """What of this the group's filter does not let through, where it may go by interest for that while it is out."""
    if group.stream.retention != Retention.INTEREST:
        return []
    is_wanted = lets(group.filter_keys)
    offsets = [offset for offset, key in spent.keys.items() if not is_wanted(key)]
    if not offsets:
        return []
    return store.log().run(pending.not_replayed(group.stream.stream_id, group.name, offsets))


def _at_hand(view: GroupView, changed: Group, spent: pending.Spent, told: Preview | None) -> GroupEffect:
    """What the group itself loses; ``told``: what goes at once, of what its filter does not let through."""
    dying = len(spent.keys) - (told.among if told else 0)
    return GroupEffect(None, dying, spent.is_complete, _ending(view, changed))


def _ending(view: GroupView, changed: Group) -> Ending | None:
    held, after_s = view.group.inactive_after, changed.inactive_after
    if after_s is None or (held is not None and after_s >= held):
        return None
    return Ending(after_s, view.unfetched_ms / 1000, view.state.ack_pending, view.state.dead_letters)
