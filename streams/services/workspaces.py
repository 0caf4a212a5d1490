"""Workspaces: made, changed, and deleted with everything in them."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from streams import store
from streams.access import Actor
from streams.errors import Refusal
from streams.log import config
from streams.models import DEFAULT_WORKSPACE, Policy, Token, Workspace
from streams.services.erasures import erasures_keep
from streams.services.events import event_of, event_record, events_append
from streams.services.plans import clamped
from streams.services.streams import streams_delete
from streams.services.streams_told import streams_publish
from streams.services.summaries import listed
from streams.services.tokens import token_revoke, tokens_of_workspace_publish

SETTINGS = ("plan", "rate_limit", "rate_burst")
"""What of a workspace may be set; `Workspace` says what each means."""


@transaction.atomic
def workspace_create(*, name: str, actor: Actor, settings: Mapping[str, Any] | None = None) -> Workspace:
    """Make a workspace.

    Args:
        settings: those of ``SETTINGS`` that shall differ from their defaults.

    Raises:
        Refusal: ``workspace_exists``.
    """
    workspace, is_new = Workspace.objects.get_or_create(name=name, defaults=settings or {})
    if not is_new:
        raise Refusal("workspace_exists", f"Workspace {name!r} exists.", workspace=name)
    event_record(
        workspace,
        kind="workspace.created",
        actor=actor,
        after={"name": name, **settings_of(workspace)},
        summary=f"Workspace {name} was created.",
    )
    return workspace


@transaction.atomic
def workspace_change(workspace: Workspace, *, changes: Mapping[str, Any], actor: Actor) -> Workspace:
    """Change settings of ``SETTINGS``; those not named keep their values. Its tokens follow within 2 seconds.

    A lower plan bounds the streams that keep more at once (``services.plans.plan_effects`` tells first); a higher one
    leaves them as they are.
    """
    workspace = Workspace.objects.select_for_update().get(pk=workspace.pk)
    before = settings_of(workspace)
    changed = {field: value for field, value in changes.items() if before[field] != value}
    if not changed:
        return workspace
    for field, value in changed.items():
        setattr(workspace, field, value)
    workspace.save(update_fields=list(changed))
    if "plan" in changed:
        _streams_bound(workspace, actor=actor)
    event_record(
        workspace,
        kind="workspace.changed",
        actor=actor,
        before={field: before[field] for field in changed},
        after=changed,
        summary=f"Workspace {workspace.name} was changed: {listed(changed)}.",
    )
    transaction.on_commit(lambda: tokens_of_workspace_publish(workspace))
    return workspace


def _streams_bound(workspace: Workspace, *, actor: Actor) -> None:
    """Hold the workspace's streams and policies to its plan."""
    held = workspace.streams.select_for_update(of=("self",)).filter(internal=False).order_by("pk")
    touched, events = [], []
    for stream in held.select_related("workspace"):
        limits = clamped(stream, workspace.cap)
        before = {
            field: getattr(stream, field) for field in limits if getattr(stream, field) != limits[field]
        }
        if not before:
            continue
        after = {field: limits[field] for field in before}
        for field, value in after.items():
            setattr(stream, field, value)
        stream.is_told = False
        stream.save(update_fields=[*after, "is_told", "updated_at"])
        touched.append(stream)
        events.append(
            event_of(
                workspace,
                kind="stream.changed",
                actor=actor,
                stream=stream.name,
                before=before,
                after=after,
                summary=f"Stream {stream.name} was changed by plan {workspace.plan}: {listed(after)}.",
            )
        )
    for policy in Policy.objects.select_for_update().filter(workspace=workspace):
        before = {
            field: getattr(policy, field)
            for field, bound in workspace.cap.bounds.items()
            if bound.most is not None and (getattr(policy, field) or 0) > bound.most
        }
        if not before:
            continue
        for field in before:
            setattr(policy, field, workspace.cap.bounds[field].most)
        policy.save()
        events.append(
            event_of(
                workspace,
                kind="policy.changed",
                actor=actor,
                before={"name": policy.name, **before},
                after={"name": policy.name, **{field: getattr(policy, field) for field in before}},
                summary=f"Policy {policy.name} was changed by plan {workspace.plan}: {listed(before)}.",
            )
        )
    events_append(events)
    transaction.on_commit(lambda: streams_publish(touched))


def settings_of(workspace: Workspace) -> dict[str, Any]:
    """The settings of a workspace as they are."""
    return {field: getattr(workspace, field) for field in SETTINGS}


def workspace_delete(workspace: Workspace, *, actor: Actor) -> None:
    """Delete a workspace with its streams and tokens.

    Raises:
        Refusal: ``operation_denied`` for the default workspace.
        StoreUnavailable: nothing was deleted, or the worker takes out what is left.
    """
    if workspace.name == DEFAULT_WORKSPACE:
        raise Refusal(
            "operation_denied",
            "The default workspace cannot be deleted.",
            workspace=workspace.name,
        )
    store.demand(workspace.streams.values_list("stream_id", flat=True))
    _workspace_delete(workspace, actor=actor)


@transaction.atomic
def _workspace_delete(workspace: Workspace, *, actor: Actor) -> None:
    # Everything is locked before the first event is recorded; nobody can make a stream in it from here on.
    workspace = Workspace.objects.select_for_update().get(pk=workspace.pk)
    streams = workspace.streams.select_for_update(of=("self",)).select_related("workspace").order_by("pk")
    streams_delete(list(streams), actor=actor)
    for token in Token.objects.filter(workspace=workspace).select_related("workspace"):
        token_revoke(token, actor=actor)
    workspace_id = workspace.pk
    erasures_keep(workspace)
    workspace.delete()
    event_record(
        None,
        kind="workspace.deleted",
        actor=actor,
        before={"name": workspace.name, **settings_of(workspace)},
        summary=f"Workspace {workspace.name} was deleted with everything in it.",
    )
    transaction.on_commit(lambda: store.log().run(config.names_remove(workspace_id)))
