"""What other settings of a group, or a new one, would take away, as a page shows it and asks for agreement."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.confirmations import LARGE_MESSAGES, is_much, is_production
from dashboard.shown import Shown
from streams import selectors
from streams.log.preview import Preview
from streams.models import Group, Stream
from streams.selectors import Ending, GroupEffect, GroupView
from streams.services.groups import group_as_changed

SHOWN = ("", "buried_", "letters_", "ending_")
"""What a page shows as numbers, as its form calls it: messages that go at once, those in flight that become dead
letters, and the dead letters and messages that go with a group that ends.
"""


@dataclass(frozen=True, slots=True)
class ShownEffect:
    """What would be taken away.

    Attributes:
        numbers: how many of each of ``SHOWN``, at once and within a minute at most.
        phrase: what has to be typed first: the stream's name, the group's where it ends, both where both are asked for;
            nothing where little goes.
    """

    effect: GroupEffect
    numbers: Mapping[str, Shown]
    phrase: str

    @property
    def preview(self) -> Preview | None:
        return self.effect.going

    @property
    def ending(self) -> Ending | None:
        return self.effect.ending

    @property
    def all_looked_at(self) -> bool:
        return self.effect.all_looked_at

    @property
    def shown(self) -> Shown:
        return self.numbers[""]

    @property
    def buried(self) -> Shown:
        return self.numbers["buried_"]

    @property
    def takes_something(self) -> bool:
        """Whether it is to be agreed to."""
        return self.effect.takes_something

    def has_grown(self, then: Mapping[str, Shown]) -> bool:
        """Whether more would go than was shown, so that a person is to be asked again."""
        return any(now.messages > then[what].most for what, now in self.numbers.items())


def effect_of_new(planned: Group, *, stored: int, arriving: float, then: Mapping[str, Shown]) -> ShownEffect:
    """What making a group would take away.

    Args:
        stored, arriving: messages that the stream holds, and that may come in a minute.
        then: what was shown before, by ``SHOWN``, where it was.
    """
    effect = selectors.group_effect_of_new(planned)
    return _shown(effect, planned, stored=stored, arriving=arriving, then=then)


def effect_of_change(
    view: GroupView,
    settings: Mapping[str, Any],
    *,
    stored: int,
    arriving: float,
    then: Mapping[str, Shown],
) -> ShownEffect:
    """What giving a group these settings would take away; the others are those of ``effect_of_new``.

    Raises:
        Refusal: as giving it these would be refused.
    """
    changed = group_as_changed(view.group, changes=settings)
    effect = selectors.group_effect_of_change(view, changed)
    return _shown(effect, changed, stored=stored, arriving=arriving, then=then)


def _shown(
    effect: GroupEffect, group: Group, *, stored: int, arriving: float, then: Mapping[str, Shown]
) -> ShownEffect:
    ending, now_ms = effect.ending, int(time.time() * 1000)
    # What is in flight and what is dead come and go with fetches and answers: only their own pace tells.
    counted = {
        "": (effect.going.messages if effect.going else 0, arriving),
        "buried_": (effect.dying, 0.0),
        "letters_": (ending.dead_letters if ending else 0, 0.0),
        "ending_": (ending.messages if ending else 0, arriving),
    }
    numbers = {
        what: then[what].again(messages, arriving=coming, at_ms=now_ms)
        for what, (messages, coming) in counted.items()
    }
    of_stream = _phrase(effect, numbers, group.stream, stored=stored)
    named = [of_stream, group.name if ending else ""]
    return ShownEffect(effect, numbers, "/".join(name for name in named if name))


def _phrase(effect: GroupEffect, numbers: Mapping[str, Shown], stream: Stream, *, stored: int) -> str:
    """The stream's name, where enough goes at once or dies for it."""
    going, buried = numbers[""], numbers["buried_"]
    is_unsure = effect.going is not None and not effect.going.is_complete
    is_large = (bool(going.messages) and is_much(going.most, stored=stored)) or buried.most >= LARGE_MESSAGES
    is_guarded = bool(going.messages or buried.messages) and is_production(stream)
    return stream.name if is_unsure or is_large or is_guarded else ""
