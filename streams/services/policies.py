"""Retention policies: made, changed for every stream that uses them, given to many streams at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from streams import selectors
from streams.access import Actor
from streams.errors import Refusal, policy_not_found
from streams.models import POLICY_LIMITS, Event, Policy, Stream, Workspace
from streams.services.events import event_of, event_record, events_append
from streams.services.plans import within_plan
from streams.services.streams_told import streams_publish
from streams.services.summaries import counted, listed
from streams.services.workspace_lock import workspace_held

SETTINGS = (*POLICY_LIMITS, "description")


def settings_of(policy: Policy) -> dict[str, Any]:
    """A policy's settings by name."""
    return {field: getattr(policy, field) for field in SETTINGS}


@transaction.atomic
def policy_create(
    workspace: Workspace, *, name: str, settings: Mapping[str, Any], actor: Actor
) -> tuple[Policy, bool]:
    """Make a policy; again with the same settings answers the one that is there.

    Returns:
        The policy, and whether it was made now.

    Raises:
        Refusal: ``policy_exists`` with other settings, ``quota_exceeded`` above the plan's cap.
    """
    workspace = workspace_held(workspace)
    fresh = Policy(workspace=workspace, name=name, **settings)
    within_plan(workspace, fresh.limits)
    held = Policy.objects.filter(workspace=workspace, name=name).first()
    if held is not None:
        differs = [field for field in SETTINGS if getattr(held, field) != getattr(fresh, field)]
        if differs:
            raise Refusal(
                "policy_exists", f"Policy {name!r} exists with other settings.", policy=name, differs=differs
            )
        return held, False
    fresh.save(force_insert=True)
    event_record(
        workspace,
        kind="policy.created",
        actor=actor,
        after={"name": name, **settings_of(fresh)},
        summary=f"Policy {name} was created.",
    )
    return fresh, True


@transaction.atomic
def policy_change(policy: Policy, *, changes: Mapping[str, Any], actor: Actor) -> Policy:
    """Change a policy and every stream that uses it; sealed ones keep what they have.

    Raises:
        Refusal: as ``policy_rows_change``.
    """
    policy, touched = policy_rows_change(policy, changes=changes, actor=actor)
    transaction.on_commit(lambda: streams_publish(touched))
    return policy


def policy_rows_change(
    policy: Policy, *, changes: Mapping[str, Any], actor: Actor
) -> tuple[Policy, list[Stream]]:
    """Change the rows alone, within a transaction; the caller tells the log of the streams after the commit.

    Returns:
        The policy, and the streams whose settings are others now.

    Raises:
        Refusal: ``quota_exceeded`` above the plan's cap, ``policy_not_found`` when it has been deleted meanwhile.
    """
    policy = _locked(policy)
    before = settings_of(policy)
    changed = {field: value for field, value in changes.items() if before[field] != value}
    for field, value in changed.items():
        setattr(policy, field, value)
    within_plan(policy.workspace, policy.limits)
    if not changed:
        return policy, []
    policy.save()
    streams = _users(policy).filter(sealed=False).select_for_update(of=("self",))
    touched, events = _give(policy, list(streams), actor=actor)
    event = event_of(
        policy.workspace,
        kind="policy.changed",
        actor=actor,
        before={"name": policy.name, **{field: before[field] for field in changed}},
        after={"name": policy.name, **changed},
        summary=f"Policy {policy.name} was changed, and {counted(len(events), 'stream')} with it: {listed(changed)}.",
    )
    events_append([event, *events])
    return policy, touched


@transaction.atomic
def policy_apply(policy: Policy, *, streams: Sequence[Stream], actor: Actor) -> None:
    """Give streams this policy and its limits; sealed ones keep what they have."""
    policy = _locked(policy)
    ids = [stream.pk for stream in streams]
    held = [
        stream
        for first in range(0, len(ids), 500)
        for stream in Stream.objects.select_for_update(of=("self",))
        .select_related("workspace")
        .filter(pk__in=ids[first : first + 500], sealed=False)
        .order_by("name")
    ]
    touched, events = _give(policy, held, actor=actor)
    events_append(events)
    transaction.on_commit(lambda: streams_publish(touched))


@transaction.atomic
def policy_delete(policy: Policy, *, actor: Actor) -> None:
    """Delete a policy that no stream uses.

    Raises:
        Refusal: ``policy_in_use``.
    """
    policy = _locked(policy)
    count = _users(policy).count()
    if count:
        raise Refusal(
            "policy_in_use",
            f"{count:,} streams use policy {policy.name!r}.",
            policy=policy.name,
            streams=count,
        )
    before = {"name": policy.name, **settings_of(policy)}
    policy.delete()
    event_record(
        policy.workspace,
        kind="policy.deleted",
        actor=actor,
        before=before,
        summary=f"Policy {policy.name} was deleted.",
    )


def policy_effects(policy: Policy, *, changes: Mapping[str, Any]) -> list[selectors.Effect]:
    """What other limits of a policy would do to the streams that use it.

    Raises:
        Refusal: ``quota_exceeded`` above the plan's cap.
    """
    limits = policy.limits | {field: changes[field] for field in POLICY_LIMITS if field in changes}
    bounded = within_plan(policy.workspace, limits)
    return selectors.effects_of([(stream, bounded) for stream in _users(policy).filter(sealed=False)])


def apply_effects(policy: Policy, *, streams: Sequence[Stream]) -> list[selectors.Effect]:
    """What giving streams this policy would do to them."""
    settings = {"policy": policy.name, **within_plan(policy.workspace, policy.limits)}
    return selectors.effects_of([(stream, settings) for stream in streams if not stream.sealed])


def _locked(policy: Policy) -> Policy:
    """The policy as it is now, held with its workspace's plan until the transaction ends."""
    workspace_held(policy.workspace)  # first, as whoever changes the plan does
    held = (
        Policy.objects.select_for_update(of=("self",))
        .select_related("workspace")
        .filter(pk=policy.pk)
        .first()
    )
    if held is None:
        raise policy_not_found(policy.name)
    return held


def _users(policy: Policy) -> Any:
    found = Stream.objects.filter(workspace=policy.workspace, policy=policy.name, internal=False)
    return found.select_related("workspace").order_by("name")


def _give(policy: Policy, streams: Sequence[Stream], *, actor: Actor) -> tuple[list[Stream], list[Event]]:
    """Write the policy and its limits into streams; returns those that were others, and their events."""
    settings = {"policy": policy.name, **within_plan(policy.workspace, policy.limits)}
    touched: list[Stream] = []
    events: list[Event] = []
    for stream in streams:
        after = {field: value for field, value in settings.items() if getattr(stream, field) != value}
        if not after:
            continue
        before = {field: getattr(stream, field) for field in after}
        for field, value in after.items():
            setattr(stream, field, value)
        stream.is_told = False
        stream.save(update_fields=[*after, "is_told", "updated_at"])
        touched.append(stream)
        events.append(
            event_of(
                policy.workspace,
                kind="stream.changed",
                actor=actor,
                stream=stream.name,
                before=before,
                after=after,
                summary=f"Stream {stream.name} was changed by policy {policy.name}: {listed(after)}.",
            )
        )
    return touched, events
