"""Making what a file declares, through the services that the API uses, and noting what they refuse."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from typing import Any

from django.db import transaction

from streams.access import Actor
from streams.api.declared.checking import Declared, StreamDeclared
from streams.api.declared.reading import Path
from streams.api.declared.state import OF_RULES, default_of
from streams.api.group_objects import FIELDS
from streams.errors import Refusal
from streams.models import POLICY_LIMITS, AlertRule, Event, Group, Policy, Stream, Workspace
from streams.models.stream import Retention
from streams.services import alerts, groups, policies, streams, streams_told
from streams.services.events import events_append

SECTIONS = {"policy": "policies", "stream": "streams", "group": "streams", "alert rule": "alert_rules"}
"""Where in a file each kind of object stands."""

START = ("start_from", "start_offset", "start_timestamp")


class Making:
    """One walk over what is declared; what a service refuses is noted with its place; it goes on without that."""

    def __init__(self, declared: Declared, workspace: Workspace, *, actor: Actor) -> None:
        self._declared, self._workspace, self._actor = declared, workspace, actor
        self._new: AbstractSet[str] = set()
        self._touched: set[int] = set()

    def policies(self) -> None:
        held = {each.name: each for each in Policy.objects.filter(workspace=self._workspace)}
        for name in self._declared.policies or {}:
            self._try(("policies", name), partial(self._policy, name, held.get(name)))

    def _policy(self, name: str, held: Policy | None) -> None:
        settings = self._right(("policies", name), (self._declared.policies or {})[name])
        if held is None:
            policies.policy_create(self._workspace, name=name, settings=settings, actor=self._actor)
            return
        wanted = self._whole(("policy", name), policies.SETTINGS, settings)
        _, rows = policies.policy_rows_change(held, changes=wanted, actor=self._actor)
        self._touched |= {row.pk for row in rows}

    def streams(self) -> None:
        held = {each.name: each for each in Stream.objects.filter(workspace=self._workspace)}
        declared = self._declared.streams or {}
        self._new = declared.keys() - held.keys()
        self._make([name for name in declared if name in self._new])
        events: list[Event] = []
        for name in declared.keys() - self._new:
            self._try(("streams", name), partial(self._stream, held[name], declared[name], events))
        events_append(sorted(events, key=lambda event: event.stream))

    def _stream(self, held: Stream, declared: StreamDeclared, events: list[Event]) -> None:
        changes = self._stream_changes(held, declared)
        row, made = streams.stream_row_change(held, changes=changes, actor=self._actor)
        self._touched.add(row.pk)
        events += made

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

    def _make(self, names: Sequence[str]) -> None:
        """Make streams in one go; where one is refused one by one, so that every refusal has its place."""
        declared = self._declared.streams or {}

        def settings_of(name: str) -> dict[str, Any]:
            return self._stream_right(name, declared[name].settings)

        with suppress(Refusal), transaction.atomic():
            wanted = [(name, settings_of(name)) for name in names]
            streams.streams_create(self._workspace, wanted=wanted, actor=self._actor)
            return

        def make(name: str) -> None:
            streams.stream_create(self._workspace, name=name, settings=settings_of(name), actor=self._actor)

        for name in names:
            self._try(("streams", name), partial(make, name))

    def _stream_right(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What is right of a stream's settings, and of what its policy says."""
        right = self._right(("streams", name), settings)
        of_policy = ("policies", str(right.get("policy")))
        if right.get("policy") and self._declared.is_wrong(of_policy):
            del right["policy"]
        elif right.get("policy") and self._declared.is_wrong_below(of_policy):
            right = {field: value for field, value in right.items() if field not in POLICY_LIMITS}
        return right

    def _stream_changes(self, held: Stream, stream: StreamDeclared) -> dict[str, Any]:
        settings = self._stream_right(held.name, stream.settings)
        wanted = self._whole(("stream", held.name), streams_told.SETTINGS, settings)
        wanted["policy"] = wanted.get("policy") or ""
        if wanted.pop("storage", held.storage) != held.storage:
            raise Refusal(
                "validation_error", "The storage of a stream cannot be changed.", fields=["storage"]
            )
        if wanted["policy"]:
            # The policy decides; what the file says beside it must be the same.
            wanted = {
                name: value for name, value in wanted.items() if name not in POLICY_LIMITS or name in settings
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
                at = ("streams", stream, "groups", name)
                self._try(at, partial(self._group, at, rows[stream], held.get((stream, name)), settings))

    def _group(self, at: Path, stream: Stream, held: Group | None, settings: Mapping[str, Any]) -> None:
        settings = self._right(at, settings)
        left_out: AbstractSet[str] = set()
        if any(self._declared.is_wrong((*at, FIELDS.get(name, name))) for name in START):
            left_out |= set(START)
        if self._declared.is_wrong((*at, "max_deliver")):
            left_out |= {"backoff"}  # is judged by it
        settings = {name: value for name, value in settings.items() if name not in left_out}
        if held is None:
            is_new_stream = stream.name in self._new
            groups.group_create(
                stream, name=at[-1], settings=settings, actor=self._actor, is_new_stream=is_new_stream
            )
            return
        wanted = {
            name: value
            for name, value in self._whole(
                ("group", stream.name, held.name), groups.SETTINGS, settings
            ).items()
            if name not in left_out
        }
        for name in START:
            if name in wanted and wanted.pop(name) != getattr(held, name):
                raise Refusal(
                    "validation_error",
                    "Where a group starts is fixed when it is created; seek moves it.",
                    fields=["start_from"],
                )
        groups.group_change(held, changes=wanted, actor=self._actor)

    def alert_rules(self) -> None:
        held = {each.name: each for each in AlertRule.objects.filter(workspace=self._workspace)}
        for name in self._declared.alert_rules or {}:
            if not self._declared.is_wrong(("alert_rules", name, "watch")):  # by which the rest is judged
                self._try(("alert_rules", name), partial(self._rule, name, held.get(name)))

    def _rule(self, name: str, held: AlertRule | None) -> None:
        settings = self._right(("alert_rules", name), (self._declared.alert_rules or {})[name])
        if held is None:
            alerts.rule_create(self._workspace, name=name, settings=settings, actor=self._actor)
            return
        wanted = self._whole(("alert rule", name), OF_RULES, settings)
        changes = {field: value for field, value in wanted.items() if getattr(held, field) != value}
        if changes:
            alerts.rule_change(held, changes=changes, actor=self._actor)

    def is_undeclared(self, path: tuple[str, ...]) -> bool:
        """Whether the file speaks of such things and not of this one."""
        if self._declared.is_wrong(_in_file(path)):
            return False
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
        delete: dict[str, Callable[[tuple[str, ...]], None]] = {
            "group": self._delete_group,
            "stream": self._delete_stream,
            "policy": self._delete_policy,
            "alert rule": self._delete_rule,
        }
        for kind, act in delete.items():
            for path in paths:
                if path[0] == kind:
                    self._try((SECTIONS[kind],), partial(act, path))

    def _delete_group(self, path: tuple[str, ...]) -> None:
        found = Group.objects.select_related("stream__workspace")
        group = found.get(stream__workspace=self._workspace, stream__name=path[1], name=path[2])
        groups.group_delete(group, actor=self._actor)

    def _delete_stream(self, path: tuple[str, ...]) -> None:
        stream = Stream.objects.select_related("workspace").get(workspace=self._workspace, name=path[1])
        streams.stream_delete(stream, actor=self._actor)

    def _delete_policy(self, path: tuple[str, ...]) -> None:
        users = Stream.objects.filter(workspace=self._workspace, policy=path[1]).values_list(
            "name", flat=True
        )
        if any(self._declared.is_wrong(("streams", name, "policy")) for name in users):
            return  # whether they go on using it is not known
        policies.policy_delete(Policy.objects.get(workspace=self._workspace, name=path[1]), actor=self._actor)

    def _delete_rule(self, path: tuple[str, ...]) -> None:
        rule = AlertRule.objects.select_related("workspace").get(workspace=self._workspace, name=path[1])
        alerts.rule_delete(rule, actor=self._actor)

    def _whole(
        self, path: tuple[str, ...], names: tuple[str, ...], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Every setting that is not wrong: what is given, the default elsewhere."""
        at = _in_file(path)
        return {
            name: given[name] if name in given else default_of(path, name, self._workspace)
            for name in names
            if not self._declared.is_wrong((*at, FIELDS.get(name, name)))
        }

    def _right(self, at: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the settings that nothing is known against."""
        return {
            name: value
            for name, value in settings.items()
            if not self._declared.is_wrong((*at, FIELDS.get(name, name)))
        }

    def _try(self, path: Path, act: Callable[[], None]) -> None:
        """Do it; where fields are refused note that, and do it without them, as more may be wrong."""
        is_worth_it = True
        while is_worth_it:
            try:
                with transaction.atomic():
                    act()
                return
            except Refusal as refusal:
                is_worth_it = self._refuse(path, refusal)

    def _refuse(self, path: Path, refusal: Refusal) -> bool:
        """Note what is refused; whether it was told of fields that nothing was known against."""
        fields = refusal.details.get("fields") or refusal.details.get("differs", [])[:1]
        if not fields:
            self._declared.faults.append(self._declared.document.fault(path, refusal.message))
            return False
        sentence = refusal.message.removeprefix(f"{fields[0]}: ")
        is_new = [self._declared.refuse((*path, field), sentence) for field in fields]
        return any(is_new)


def _in_file(path: tuple[str, ...]) -> Path:
    """Where in a file an object of ``State`` stands."""
    kind, name, *group = path
    return (SECTIONS[kind], name, "groups", *group) if group else (SECTIONS[kind], name)
