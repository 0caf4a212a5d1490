"""What another plan would take from a workspace, shown before it is saved."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.confirmations import LARGE_MESSAGES, is_production
from dashboard.live import rates
from dashboard.shown import Shown, counts_read
from streams.models import Workspace
from streams.selectors import Effect
from streams.services.plans import plan_effects

MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class PlanPreview:
    """The streams that a plan bounds more tightly, and what goes of them.

    Attributes:
        most_unread: of each group that loses unread messages, how many it may within the minute, by stream and group.
        which: stands for these streams and the limits that they get; another for others.
        phrase: what has to be typed before it is saved; nothing where little goes.
    """

    plan: str
    effects: Sequence[Effect]
    shown: Shown
    most_unread: Mapping[str, int]
    which: str
    phrase: str

    @property
    def first(self) -> Sequence[Effect]:
        """Those that a page lists."""
        return self.effects[:MOST_SHOWN]

    @property
    def messages(self) -> int:
        return self.shown.messages

    @property
    def is_complete(self) -> bool:
        return all(effect.is_complete for effect in self.effects)

    @property
    def unread(self) -> int:
        """What all groups lose together."""
        return sum(effect.unread for effect in self.effects)

    @property
    def groups_losing(self) -> int:
        return sum(effect.groups_losing for effect in self.effects)

    @property
    def each_unread(self) -> str:
        """How many each group may lose, for ``is_as``."""
        return json.dumps(self.most_unread)

    def is_as(self, then: Shown, which: str, each_unread: str) -> bool:
        """Whether it touches what was shown, and no more goes than that, of all and unread of each group."""
        if not self.effects:
            return True
        seen = counts_read(each_unread) or {}
        return (
            which == self.which
            and self.messages <= then.most
            and all(unread <= seen.get(name, 0) for name, unread in _unread(self.effects).items())
        )


def plan_preview(workspace: Workspace, *, plan: str, then: Shown) -> PlanPreview:
    """What a plan would do now.

    Args:
        then: what was shown before, where it was.
    """
    effects = plan_effects(workspace, plan=plan) if plan != workspace.plan else []
    total = sum(effect.messages for effect in effects)
    arriving = rates.arriving({effect.stream.stream_id for effect in effects if effect.messages})
    shown = then.again(total, arriving=sum(arriving.values()), at_ms=int(time.time() * 1000))
    is_unknown = not all(effect.is_complete for effect in effects)
    is_grave = any(effect.messages and is_production(effect.stream) for effect in effects)
    return PlanPreview(
        plan,
        effects,
        shown,
        {name: unread + shown.margin for name, unread in _unread(effects).items()},
        _digest(effects),
        workspace.name if is_unknown or is_grave or shown.most >= LARGE_MESSAGES else "",
    )


def _unread(effects: Sequence[Effect]) -> dict[str, int]:
    """What each group loses, by stream and group."""
    return {
        f"{effect.stream.name} {group}": unread
        for effect in effects
        for group, unread in effect.losing.items()
    }


def _digest(effects: Sequence[Effect]) -> str:
    told = sorted((effect.stream.stream_id, sorted(effect.after.items())) for effect in effects)
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
