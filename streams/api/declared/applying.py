"""Making a workspace as a file says: all of it, or with everything that is wrong nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from streams import selectors, store
from streams.access import Actor
from streams.api.declared.checking import Declared
from streams.api.declared.group_effects import group_effects
from streams.api.declared.making import Making
from streams.api.declared.pruning import Lost, losses_of
from streams.api.declared.reading import Faulty
from streams.api.declared.state import State, state_of
from streams.models import POLICY_LIMITS, AlertRule, Group, Stream, Workspace
from streams.models.stream import Retention
from streams.selectors import Ending, GroupEffect

NOTHING = GroupEffect()


@dataclass(frozen=True, slots=True)
class Change:
    """One object that is made, changed or deleted.

    Attributes:
        path: as in ``State``.
        before, after: of a change the settings that change; None where there is no object.
        messages: stored messages of the stream that go at once, also because its groups want less.
        losing: groups that stay and lose unread messages by it: name → how many, most first.
        reason: why not all were looked at and more may go, as of ``Preview.reason``; None where they were.
        of_group: what a group loses by its own settings, now or once nobody fetches from it.
    """

    path: tuple[str, ...]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    messages: int = 0
    losing: Mapping[str, int] = field(default_factory=dict)
    reason: str | None = None
    of_group: GroupEffect = NOTHING

    @property
    def why_incomplete(self) -> str | None:
        """Why not everything that goes was counted: ``reason``, or that of the group."""
        return self.reason or self.of_group.reason


@dataclass(slots=True)
class Outcome:
    """What an apply did, or would do.

    Attributes:
        left: objects that the file does not declare and that stay, because they were not to be pruned.
        lost: what goes with streams and groups that are deleted, by path.
        ids: of the streams, groups and alert rules that were there before, by path: another of the name has another.
        is_done: whether it was done; false where everything was taken back.
    """

    changes: list[Change] = field(default_factory=list)
    left: list[tuple[str, ...]] = field(default_factory=list)
    lost: Mapping[tuple[str, ...], Lost] = field(default_factory=dict)
    ids: Mapping[tuple[str, ...], str | int] = field(default_factory=dict)
    is_done: bool = False

    @property
    def messages(self) -> int:
        """Stored messages that go at once, those of deleted streams among them."""
        return sum(going for _, going in self.going)

    @property
    def going(self) -> list[tuple[tuple[str, ...], int]]:
        """How many stored messages go at once by each change, and with each stream that is deleted: path, messages."""
        return [
            *((change.path, change.messages) for change in self.changes),
            *((path, lost.messages) for path, lost in self.lost.items()),
        ]

    @property
    def dying(self) -> int:
        """Messages in flight that become dead letters, unless they are answered in time."""
        return sum(change.of_group.dying for change in self.changes)

    @property
    def endings(self) -> list[Ending]:
        """Groups that are deleted by themselves, or sooner."""
        return [change.of_group.ending for change in self.changes if change.of_group.ending]

    @property
    def reason(self) -> str | None:
        """Why not all messages that go at once were counted; ``counting``, which will be over, where that is so of one
        of them.
        """
        return min((change.reason for change in self.changes if change.reason), default=None)

    @property
    def is_complete(self) -> bool:
        """Whether everything that goes was counted."""
        return all(change.why_incomplete is None for change in self.changes)


def apply(
    declared: Declared,
    workspace: Workspace,
    *,
    actor: Actor,
    prune: bool = False,
    dry_run: bool = False,
    agreed: Callable[[Outcome], bool] = lambda outcome: True,
) -> Outcome:
    """Make the workspace as the file says, in one transaction, through the services that the API uses.

    Args:
        prune: delete what a section of the file does not declare.
        dry_run: take everything back, so that the outcome is exactly what would happen.
        agreed: asked inside the transaction, with what is about to be so; everything is taken back where it says no.

    Raises:
        Faulty: with the place of everything that is wrong in the file and that the services refuse of the rest; nothing
            was changed.
        LogError: the message store does not answer.
    """
    store.demand()
    with transaction.atomic():
        before = state_of(workspace)
        rows = {each.name: each for each in Stream.objects.filter(workspace=workspace, internal=False)}
        ids = _ids(rows, workspace)
        making = Making(declared, workspace, actor=actor)
        making.policies()
        making.streams()
        making.tell(by_interest=False)
        making.groups()
        making.alert_rules()
        undeclared = [path for path in before if making.is_undeclared(path)]
        lost = losses_of(undeclared, workspace) if prune else {}
        if prune:
            making.delete(undeclared)
        making.tell(by_interest=True)
        if declared.faults:
            raise Faulty(declared.faults)
        outcome = Outcome(
            _changes(before, state_of(workspace), rows, workspace),
            [] if prune else undeclared,
            lost,
            ids,
        )
        outcome.is_done = not dry_run and agreed(outcome)
        transaction.set_rollback(not outcome.is_done)
    return outcome


def _ids(rows: Mapping[str, Stream], workspace: Workspace) -> dict[tuple[str, ...], str | int]:
    groups_ = Group.objects.filter(stream__workspace=workspace).values_list("stream__name", "name", "pk")
    ids: dict[tuple[str, ...], str | int] = {("group", stream, name): pk for stream, name, pk in groups_}
    rules = AlertRule.objects.filter(workspace=workspace).values_list("name", "pk")
    ids |= {("alert rule", name): pk for name, pk in rules}
    return ids | {("stream", name): row.stream_id for name, row in rows.items()}


def _changes(before: State, after: State, rows: Mapping[str, Stream], workspace: Workspace) -> list[Change]:
    found = []
    for path in sorted({**before, **after}, key=_order):
        old, new = before.get(path), after.get(path)
        if old is None or new is None:
            found.append(Change(path, old, new))
        elif old != new:
            differs = [name for name in new if old[name] != new[name]]
            found.append(
                Change(path, {name: old[name] for name in differs}, {name: new[name] for name in differs})
            )
    going = {
        where: selectors.effect_of(rows[name], limits) for name, where, limits in _asked(found, after, rows)
    }
    found = [
        replace(change, messages=told.messages, losing=_of_before(told, before), reason=told.reason)
        if (told := going.get(change.path))
        else change
        for change in found
    ]
    changed = {
        each.path: each.before for each in found if each.path[0] == "group" and each.before and each.after
    }
    at_once = {told.stream.name: told.messages for told in going.values()}
    of_groups = group_effects(changed, workspace, at_once=at_once)
    return [
        replace(change, of_group=of_groups[change.path]) if change.path in of_groups else change
        for change in found
    ]


def _of_before(told: selectors.Effect, before: State) -> dict[str, int]:
    """What groups lose that were there before: one that is made begins with what is left."""
    name = told.stream.name
    return {group: unread for group, unread in told.losing.items() if ("group", name, group) in before}


def _asked(
    changes: Sequence[Change], after: State, rows: Mapping[str, Stream]
) -> Iterator[tuple[str, tuple[str, ...], dict[str, Any]]]:
    """Streams of which messages may go though they stay, with their limits that change, and where that is told.

    What a stream loses is told with its own change or, where only its groups change, with the last of them.
    """
    of_streams: dict[str, list[Change]] = {}
    for change in changes:
        is_of_stream = change.path[0] in ("stream", "group")
        if is_of_stream and change.path[1] in rows and ("stream", change.path[1]) in after:
            of_streams.setdefault(change.path[1], []).append(change)
    for name, those in of_streams.items():
        own = next((change.after for change in those if change.path[0] == "stream"), None) or {}
        limits = {setting: value for setting, value in own.items() if setting in POLICY_LIMITS}
        by_interest = after["stream", name]["retention"] == Retention.INTEREST
        of_groups = [change for change in those if change.path[0] == "group" and _moves_interest(change)]
        if limits or (by_interest and of_groups):
            yield name, those[0].path if own else of_groups[-1].path, limits


def _moves_interest(change: Change) -> bool:
    """Whether a group is made or deleted, or wants other messages."""
    return change.before is None or change.after is None or "filter_keys" in change.after


def _order(path: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Policies first, then each stream with its groups, then alert rules."""
    return {"policy": 0, "alert rule": 2}.get(path[0], 1), path[1:]
