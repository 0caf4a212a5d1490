"""What other settings of a group, or a new one, would take away, told before it is done."""

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.confirmations import LARGE_MESSAGES, is_much, is_production
from dashboard.shown import Shown
from streams import selectors
from streams.log.preview import Preview
from streams.models import Group
from streams.models.stream import Retention
from streams.selectors import GroupView


@dataclass(frozen=True, slots=True)
class Ending:
    """A group that would be deleted by itself, or sooner.

    Attributes:
        after_s: once nobody has fetched from it for so long.
        idle_s: for so long nobody has.
        in_flight, dead_letters: that go with it, as of now.
        going: what goes by interest with it; None where it does not.
    """

    after_s: float
    idle_s: float
    in_flight: int
    dead_letters: int
    going: Preview | None

    @property
    def is_due(self) -> bool:
        return self.idle_s >= self.after_s

    @property
    def messages(self) -> int:
        return self.going.messages if self.going else 0


@dataclass(frozen=True, slots=True)
class GroupEffect:
    """What would be taken away.

    Attributes:
        preview: what goes by interest at once; None where nothing can.
        shown: how many messages that is, at once and within a minute at most.
        buried: how many messages in flight become dead letters, as ``shown``.
        all_looked_at: whether all that are in flight were looked at for it.
        ending: where it would be deleted by itself; None where it would not, or no sooner than as it is.
        phrase: what has to be typed first; nothing where little goes.
    """

    preview: Preview | None
    shown: Shown
    buried: Shown
    all_looked_at: bool
    ending: Ending | None
    phrase: str

    @property
    def takes_something(self) -> bool:
        """Whether it is to be agreed to."""
        is_unsure = self.preview is not None and not self.preview.is_complete
        return bool(
            self.shown.messages or is_unsure or self.buried.messages or not self.all_looked_at or self.ending
        )

    def has_grown(self, *, then: Shown, buried: Shown, letters: int, going: int) -> bool:
        """Whether more would go than was shown, so that a person is to be asked again.

        Args:
            letters, going: dead letters and messages that were told to go with the group, when it ends.
        """
        more = [self.shown.messages > then.most, self.buried.messages > buried.most]
        if self.ending:
            more += [self.ending.dead_letters > letters, self.ending.messages > going]
        return any(more)


def effect_of_new(planned: Group, *, stored: int, arriving: float, then: Shown) -> GroupEffect:
    """What making a group would take away.

    Args:
        stored, arriving: messages that the stream holds, and that may come in a minute.
        then: what was shown before, where it was.
    """
    return _effect(planned, None, planned, stored=stored, arriving=arriving, then=then, buried=Shown())


def effect_of_change(
    view: GroupView,
    settings: Mapping[str, Any],
    *,
    stored: int,
    arriving: float,
    then: Shown,
    buried: Shown,
) -> GroupEffect:
    """What giving a group these settings would take away; ``then`` and ``buried`` are what was shown before."""
    changed = copy.copy(view.group)
    for name, value in settings.items():
        setattr(changed, name, value)
    filters = changed if changed.filter_keys != view.group.filter_keys else None
    return _effect(changed, view, filters, stored=stored, arriving=arriving, then=then, buried=buried)


def _effect(
    group: Group,
    view: GroupView | None,
    filters: Group | None,
    *,
    stored: int,
    arriving: float,
    then: Shown,
    buried: Shown,
) -> GroupEffect:
    stream, now_ms = group.stream, int(time.time() * 1000)
    by_interest = filters is not None and stream.retention == Retention.INTEREST
    preview = selectors.retention_preview(stream, {}, instead=filters) if by_interest else None
    count = preview.messages if preview else 0
    shown = then.again(count, arriving=arriving, at_ms=now_ms)
    spent = selectors.spent_by(view.group, max_deliver=group.max_deliver) if view else None
    dying = sum(spent.by_consumer.values()) if spent else 0
    buried = buried.again(dying, arriving=0, at_ms=now_ms)
    ending = _ending(view, group.inactive_after) if view else None
    is_unsure = preview is not None and not preview.is_complete
    is_large = (bool(count) and is_much(shown.most, stored=stored)) or buried.most >= LARGE_MESSAGES
    is_guarded = bool(count or dying) and is_production(stream)
    phrase = stream.name if is_unsure or is_large or is_guarded else ""
    return GroupEffect(
        preview,
        shown,
        buried,
        spent is None or spent.is_complete,
        ending,
        group.name if ending else phrase,
    )


def _ending(view: GroupView, after_s: float | None) -> Ending | None:
    held = view.group.inactive_after
    if after_s is None or (held is not None and after_s >= held):
        return None
    stream = view.group.stream
    by_interest = stream.retention == Retention.INTEREST
    return Ending(
        after_s,
        view.unfetched_ms / 1000,
        view.state.ack_pending,
        view.state.dead_letters,
        selectors.retention_preview(stream, {}, without=view.group) if by_interest else None,
    )
