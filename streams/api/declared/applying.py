"""Making a workspace as a file says: all of it, or with everything that is wrong nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from streams import selectors, store
from streams.access import Actor
from streams.api.declared.checking import Declared, StreamDeclared
from streams.api.declared.pruning import Lost, losses_of
from streams.api.declared.reading import Faulty, Path
from streams.api.declared.state import OF_RULES, State, default_of, model_default, state_of
from streams.errors import Refusal
from streams.models import POLICY_LIMITS, AlertRule, Event, Group, Policy, Stream, Workspace
from streams.models.stream import Retention
from streams.services import alerts, groups, policies, streams, streams_told
from streams.services.events import events_append


@dataclass(frozen=True, slots=True)
class Change:
    """One object that is made, changed or deleted.

    Attributes:
        path: as in ``State``.
        before, after: of a change the settings that change; None where there is no object.
        messages: stored messages of the stream that go at once, also because its groups want less.
        reason: why not all were looked at and more may go, as of ``Preview.reason``; None where they were.
    """

    path: tuple[str, ...]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    messages: int = 0
    reason: str | None = None

    @property
    def is_complete(self) -> bool:
        return self.reason is None


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
    def reason(self) -> str | None:
        """Why not everything was counted; ``counting``, which will be over, where that is so of one of them."""
        reasons = {change.reason for change in self.changes} - {None}
        return min((reason for reason in reasons if reason), default=None)


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
        Faulty: with the place of everything that the services refuse; nothing was changed.
        LogError: the message store does not answer.
    """
    store.demand()
    with transaction.atomic():
        before = state_of(workspace)
        rows = {each.name: each for each in Stream.objects.filter(workspace=workspace, internal=False)}
        ids = _ids(rows, workspace)
        making = _Making(declared, workspace, actor=actor)
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
        if making.faults:
            raise Faulty(making.faults)
        outcome = Outcome(
            _changes(before, state_of(workspace), rows),
            [] if prune else undeclared,
            lost,
            ids,
        )
        outcome.is_done = not dry_run and agreed(outcome)
        transaction.set_rollback(not outcome.is_done)
    return outcome


class _Making:
    """One walk over what is declared; what a service refuses is kept with its place, and the walk goes on."""

    def __init__(self, declared: Declared, workspace: Workspace, *, actor: Actor) -> None:
        self._declared, self._workspace, self._actor = declared, workspace, actor
        self.faults: list[Any] = []
        self._new: AbstractSet[str] = set()
        self._touched: set[int] = set()

    def policies(self) -> None:
        held = {each.name: each for each in Policy.objects.filter(workspace=self._workspace)}
        for name, settings in (self._declared.policies or {}).items():
            wanted = self._whole(("policy", name), policies.SETTINGS, settings)
            with self._refused_at(("policies", name)):
                if name in held:
                    _, rows = policies.policy_rows_change(held[name], changes=wanted, actor=self._actor)
                    self._touched |= {row.pk for row in rows}
                else:
                    policies.policy_create(self._workspace, name=name, settings=settings, actor=self._actor)

    def streams(self) -> None:
        held = {each.name: each for each in Stream.objects.filter(workspace=self._workspace)}
        declared = self._declared.streams or {}
        self._new = declared.keys() - held.keys()
        self._make([(name, declared[name].settings) for name in declared if name in self._new])
        events: list[Event] = []
        for name in declared.keys() - self._new:
            with self._refused_at(("streams", name)):
                changes = self._stream_changes(held[name], declared[name])
                row, made = streams.stream_row_change(held[name], changes=changes, actor=self._actor)
                self._touched.add(row.pk)
                events += made
        events_append(sorted(events, key=lambda event: event.stream))

    def tell(self, *, by_interest: bool) -> None:
        """After the commit, tell the log of the streams that policies or the file changed: each once, as it is then.

        Args:
            by_interest: of those that keep messages by interest, which hear of it after their groups, also those that
                are deleted; the others hear of it before. So nothing goes that what the file says in the end keeps.
        """
        transaction.on_commit(
            lambda: streams_told.streams_publish(
                [
                    each
                    for each in Stream.objects.select_related("workspace").filter(workspace=self._workspace)
                    if each.pk in self._touched and (each.retention == Retention.INTEREST) is by_interest
                ]
            )
        )

    def _make(self, wanted: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Make streams in one go; where one is refused one by one, so that every refusal has its place."""
        with suppress(Refusal), transaction.atomic():
            streams.streams_create(self._workspace, wanted=wanted, actor=self._actor)
            return
        for name, settings in wanted:
            with self._refused_at(("streams", name)):
                streams.stream_create(self._workspace, name=name, settings=settings, actor=self._actor)

    def _stream_changes(self, held: Stream, stream: StreamDeclared) -> dict[str, Any]:
        wanted = self._whole(("stream", held.name), streams_told.SETTINGS, stream.settings)
        wanted["policy"] = wanted["policy"] or ""
        if wanted.pop("storage") != held.storage:
            raise Refusal(
                "validation_error", "The storage of a stream cannot be changed.", fields=["storage"]
            )
        if wanted["policy"]:
            # The policy decides; what the file says beside it must be the same.
            wanted = {
                name: value
                for name, value in wanted.items()
                if name not in POLICY_LIMITS or name in stream.settings
            }
            if held.sealed and held.policy == wanted["policy"]:
                wanted = {
                    name: value for name, value in wanted.items() if name not in (*POLICY_LIMITS, "policy")
                }
        return wanted

    def groups(self) -> None:
        every = Group.objects.filter(stream__workspace=self._workspace).select_related("stream__workspace")
        held = {(each.stream.name, each.name): each for each in every}
        rows = {
            each.name: each
            for each in Stream.objects.filter(workspace=self._workspace).select_related("workspace")
        }
        for stream, declared in (self._declared.streams or {}).items():
            for name, settings in declared.groups.items():
                if stream not in rows:
                    continue  # it was refused, and that is told
                with self._refused_at(("streams", stream, "groups", name)):
                    if (stream, name) not in held:
                        groups.group_create(
                            rows[stream],
                            name=name,
                            settings=settings,
                            actor=self._actor,
                            is_new_stream=stream in self._new,
                        )
                    else:
                        self._group_change(held[stream, name], settings)

    def _group_change(self, held: Group, settings: Mapping[str, Any]) -> None:
        wanted = {
            name: settings[name] if name in settings else model_default(Group, name)
            for name in groups.SETTINGS
        }
        for name in ("start_from", "start_offset", "start_timestamp"):
            if wanted.pop(name) != getattr(held, name):
                raise Refusal(
                    "validation_error",
                    "Where a group starts is fixed when it is created; seek moves it.",
                    fields=["start_from"],
                )
        groups.group_change(held, changes=wanted, actor=self._actor)

    def alert_rules(self) -> None:
        held = {each.name: each for each in AlertRule.objects.filter(workspace=self._workspace)}
        for name, settings in (self._declared.alert_rules or {}).items():
            with self._refused_at(("alert_rules", name)):
                if name not in held:
                    alerts.rule_create(self._workspace, name=name, settings=settings, actor=self._actor)
                    continue
                wanted = self._whole(("alert rule", name), OF_RULES, settings)
                changes = {
                    field: value for field, value in wanted.items() if getattr(held[name], field) != value
                }
                if changes:
                    alerts.rule_change(held[name], changes=changes, actor=self._actor)

    def is_undeclared(self, path: tuple[str, ...]) -> bool:
        """Whether the file speaks of such things and not of this one."""
        policies_, streams_ = self._declared.policies, self._declared.streams
        match path:
            case ("policy", name):
                return policies_ is not None and name not in policies_
            case ("stream", name):
                return streams_ is not None and name not in streams_
            case ("alert rule", name):
                return self._declared.alert_rules is not None and name not in self._declared.alert_rules
            case (_, stream, name):
                return streams_ is not None and stream in streams_ and name not in streams_[stream].groups
        return False

    def delete(self, paths: list[tuple[str, ...]]) -> None:
        """Delete what is not declared: groups, then streams, then the policies that they used; and alert rules."""
        delete: dict[str, tuple[str, Callable[[tuple[str, ...]], None]]] = {
            "group": ("streams", self._delete_group),
            "stream": ("streams", self._delete_stream),
            "policy": ("policies", self._delete_policy),
            "alert rule": ("alert_rules", self._delete_rule),
        }
        for kind, (section, act) in delete.items():
            for path in paths:
                if path[0] == kind:
                    with self._refused_at((section,)):
                        act(path)

    def _delete_group(self, path: tuple[str, ...]) -> None:
        found = Group.objects.select_related("stream__workspace")
        group = found.get(stream__workspace=self._workspace, stream__name=path[1], name=path[2])
        groups.group_delete(group, actor=self._actor)

    def _delete_stream(self, path: tuple[str, ...]) -> None:
        stream = Stream.objects.select_related("workspace").get(workspace=self._workspace, name=path[1])
        streams.stream_delete(stream, actor=self._actor)

    def _delete_policy(self, path: tuple[str, ...]) -> None:
        policies.policy_delete(Policy.objects.get(workspace=self._workspace, name=path[1]), actor=self._actor)

    def _delete_rule(self, path: tuple[str, ...]) -> None:
        rule = AlertRule.objects.select_related("workspace").get(workspace=self._workspace, name=path[1])
        alerts.rule_delete(rule, actor=self._actor)

    def _whole(
        self, path: tuple[str, ...], names: tuple[str, ...], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Every setting: what is given, the default elsewhere."""
        return {
            name: given[name] if name in given else default_of(path, name, self._workspace) for name in names
        }

    @contextmanager
    def _refused_at(self, path: Path) -> Iterator[None]:
        try:
            with transaction.atomic():
                yield
        except Refusal as refusal:
            fields = refusal.details.get("fields") or refusal.details.get("differs") or [""]
            at = (*path, fields[0]) if fields[0] else path
            self.faults.append(self._declared.document.fault(at, refusal.message))


def _ids(rows: Mapping[str, Stream], workspace: Workspace) -> dict[tuple[str, ...], str | int]:
    groups_ = Group.objects.filter(stream__workspace=workspace).values_list("stream__name", "name", "pk")
    ids: dict[tuple[str, ...], str | int] = {("group", stream, name): pk for stream, name, pk in groups_}
    rules = AlertRule.objects.filter(workspace=workspace).values_list("name", "pk")
    ids |= {("alert rule", name): pk for name, pk in rules}
    return ids | {("stream", name): row.stream_id for name, row in rows.items()}


def _changes(before: State, after: State, rows: Mapping[str, Stream]) -> list[Change]:
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
    return [
        replace(change, messages=going[change.path].messages, reason=going[change.path].reason)
        if change.path in going
        else change
        for change in found
    ]


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
