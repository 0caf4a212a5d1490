"""Workspaces: made, and deleted with everything in them."""

from django.db import transaction

from streams import store
from streams.access import Actor
from streams.errors import Refusal
from streams.log import config
from streams.models import DEFAULT_WORKSPACE, Plan, Token, Workspace
from streams.services.events import event_record
from streams.services.streams import stream_delete
from streams.services.tokens import token_revoke


@transaction.atomic
def workspace_create(*, name: str, actor: Actor, plan: str = Plan.UNLIMITED) -> Workspace:
    """Make a workspace.

    Raises:
        Refusal: ``workspace_exists``.
    """
    workspace, is_new = Workspace.objects.get_or_create(name=name, defaults={"plan": plan})
    if not is_new:
        raise Refusal("workspace_exists", f"Workspace {name!r} exists.", workspace=name)
    event_record(
        workspace,
        kind="workspace.created",
        actor=actor,
        after={"name": name, "plan": plan},
        summary=f"Workspace {name} was created.",
    )
    return workspace


@transaction.atomic
def workspace_delete(workspace: Workspace, *, actor: Actor) -> None:
    """Delete a workspace with its streams and tokens.

    Raises:
        Refusal: ``operation_denied`` for the default workspace.
    """
    if workspace.name == DEFAULT_WORKSPACE:
        raise Refusal(
            "operation_denied",
            "The default workspace cannot be deleted.",
            workspace=workspace.name,
        )
    for stream in workspace.streams.select_related("workspace"):
        stream_delete(stream, actor=actor)
    for token in Token.objects.filter(workspace=workspace).select_related("workspace"):
        token_revoke(token, actor=actor)
    workspace_id = workspace.pk
    event_record(
        None,
        kind="workspace.deleted",
        actor=actor,
        before={"name": workspace.name, "plan": workspace.plan},
        summary=f"Workspace {workspace.name} was deleted with everything in it.",
    )
    workspace.delete()
    transaction.on_commit(lambda: store.log().run(config.names_remove(workspace_id)))
