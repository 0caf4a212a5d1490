"""Erasures from the history: asked for by those who must, done by the analytics process, each step an event."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from streams import store
from streams.access import Actor, Caller, stream_for
from streams.errors import Refusal, refusal_of
from streams.log import read
from streams.log.errors import LogError
from streams.models import DEFAULT_WORKSPACE, Erasure, Event, Group, Stream, Workspace
from streams.models.history import RunState
from streams.services.dead_letters import dead_letters_erase
from streams.services.events import event_record
from streams.services.storable import storable
from streams.services.summaries import went
from streams.services.windows import windows_forget, windows_naming
from streams.services.workspace_lock import workspace_held

MOST_UNFINISHED = 100
"""Erasures of one workspace that wait or run at a time."""

UNFINISHED = (RunState.QUEUED, RunState.RUNNING)


def erasure_request(
    caller: Caller,
    *,
    stream: str,
    offset: int | None = None,
    key: str = "",
    up_to: int | None = None,
    deleted: bool = False,
    deleted_workspace: str = "",
) -> Erasure:
    """Have one message, or all messages of a key, taken out of a stream's history.

    It takes nothing that is published later, however long it waits: nobody was shown that.

    Args:
        up_to: no message above this offset; in any case none above the last one that the stream has now.
        deleted: out of that of all streams of the name that were deleted, not of one that is there now; then without an
            offset and a key all of it goes.
        deleted_workspace: out of that of the streams of a workspace that was deleted; all of them where ``stream`` is
            empty.

    Raises:
        Refusal: ``forbidden`` without the scope ``erase``, of a workspace that was deleted unless the caller rules all;
            ``stream_not_found``; ``workspace_not_found``; ``operation_denied`` where the stream has ``deny_delete``;
            ``history_off``; ``rate_limited``; ``store_unavailable``.
    """
    stream_id = "" if deleted else erasable(caller, stream).stream_id
    if deleted:
        caller.demand("erase")
    if deleted_workspace:
        caller.demand_rule()
        if not workspace_ids_deleted(deleted_workspace):
            raise Refusal("workspace_not_found", f"No workspace {deleted_workspace!r} was deleted.")
    elif deleted:
        caller.demand_stream(stream)
    if not settings.ENV.history:
        raise Refusal("history_off", "The history is switched off (OKMQ_HISTORY=off).")
    if stream_id:
        last = last_of(stream, stream_id)
        up_to = last if up_to is None else min(up_to, last)
    with transaction.atomic():
        workspace_held(caller.workspace)  # first, as whoever makes a stream does
        if deleted:
            _living_held(deleted_workspace or caller.workspace.name, stream)
        waiting = Erasure.objects.filter(workspace=caller.workspace, state__in=UNFINISHED).count()
        if waiting >= MOST_UNFINISHED:
            raise Refusal(
                "rate_limited",
                f"{waiting} erasures of this workspace are not finished yet; wait for one.",
                headers={"Retry-After": "60"},
            )
        erasure = Erasure.objects.create(
            workspace=caller.workspace,
            deleted_workspace=deleted_workspace,
            stream=stream,
            stream_id=stream_id,
            offset=offset,
            key=key,
            key_sha256=hashlib.sha256(key.encode()).hexdigest() if key else "",
            up_to=up_to,
            requested_by=caller.actor.name[:200],
            address=caller.actor.address[:64],
        )
        _recorded(erasure, "requested")
    return erasure


def erasable(caller: Caller, name: str) -> Stream:
    """A stream out of whose history a caller may erase.

    Raises:
        Refusal: ``forbidden``; ``stream_not_found``; ``operation_denied``.
    """
    found = stream_for(caller, name, may="erase")
    if found.deny_delete:
        raise Refusal("operation_denied", f"Stream {found.name!r} has deny_delete set.", switch="deny_delete")
    return found


def last_of(stream: str, stream_id: str) -> int:
    """The last offset that a stream has assigned.

    Raises:
        Refusal: ``stream_not_found``; ``store_unavailable``.
    """
    try:
        return store.log().run(read.position(stream_id)).last
    except LogError as error:
        raise refusal_of(error, stream=stream) from None


def workspace_ids_deleted(name: str) -> set[int]:
    """The ids of the workspaces that had a name and were deleted: events outlive them."""
    known = Event.objects.filter(workspace=name, workspace_id__isnull=False)
    ids = set(known.order_by().values_list("workspace_id", flat=True).distinct())
    return {each for each in ids if each is not None} - set(Workspace.objects.values_list("pk", flat=True))


def workspaces_meant(erasure: Erasure) -> set[int]:
    """The ids of the workspaces in whose history an erasure of deleted streams looks."""
    if erasure.deleted_workspace:
        return workspace_ids_deleted(erasure.deleted_workspace)
    return {erasure.workspace_id}


def erasures_keep(workspace: Workspace) -> None:
    """Have what a workspace asked for done although it is about to be deleted; part of the caller's transaction."""
    waiting = Erasure.objects.filter(workspace=workspace, state__in=UNFINISHED)
    if waiting:
        ruling = Workspace.objects.get(name=DEFAULT_WORKSPACE)
        waiting.update(workspace=ruling, deleted_workspace=workspace.name)


def erasures_spare(streams: Sequence[Stream]) -> None:
    """Have the erasures of deleted streams that are not done leave out those that are deleted now: they were there when
    it was asked for. Part of the caller's transaction, which holds their rows.
    """
    waiting = Erasure.objects.filter(stream_id="", state__in=UNFINISHED)
    if not waiting.exists():  # the look is cheap, the lock is not
        return
    for erasure in waiting.select_for_update(of=("self",)).select_related("workspace").order_by("id"):
        workspace = erasure.deleted_workspace or erasure.workspace.name
        erasure.spared += [
            each.stream_id
            for each in streams
            if each.workspace.name == workspace and erasure.stream in {"", each.name}
        ]
        erasure.save(update_fields=["spared"])


def _living_held(workspace: str, stream: str) -> None:
    """Keep the streams of a name, empty for all, from being deleted until the caller's transaction has ended."""
    living = Stream.objects.filter(workspace__name=workspace).order_by("pk")
    named = living.filter(name=stream) if stream else living
    list(named.select_for_update(of=("self",)).values_list("pk"))


def streams_not_meant(erasure: Erasure) -> set[str]:
    """The ids of the streams that one of deleted streams leaves out: those that are there, and those deleted since."""
    living = set(Stream.objects.values_list("stream_id", flat=True))
    # Read after those that are there: one that is deleted in between is among one of both.
    erasure.refresh_from_db(fields=["spared"])
    return living | set(erasure.spared)


def erasures_wait_since() -> datetime | None:
    """When the oldest erasure was asked for that waits; None where none does."""
    waiting = Erasure.objects.filter(state=RunState.QUEUED).order_by("id")
    return waiting.values_list("created_at", flat=True).first()


def erasures_take() -> list[Erasure]:
    """The oldest erasure that waits and all others in the same streams, now running: they are done as one."""
    waiting = Erasure.objects.filter(state=RunState.QUEUED).order_by("id")
    if not waiting.exists():  # the look is cheap, the lock is not
        return []
    with transaction.atomic():
        held = list(waiting.select_for_update())
        taken = [each for each in held if each.whose == held[0].whose]
        for erasure in taken:
            erasure.state, erasure.progress = RunState.RUNNING, 0.0
            erasure.save(update_fields=["state", "progress"])
        return taken


def erasures_interrupted() -> int:
    """Have what a dead process left half done begun again; returns how many."""
    return Erasure.objects.filter(state=RunState.RUNNING).update(state=RunState.QUEUED)


def erasures_progress(erasures: Sequence[Erasure], progress: float) -> None:
    """Note how far those that are done together have come, 0 to 1."""
    for erasure in erasures:
        erasure.progress = progress
        erasure.save(update_fields=["progress"])


def erasure_of_letters(erasure: Erasure) -> None:
    """Delete what the groups of the stream keep of it, whose bodies outlive the stream's; of what was cut off only what
    was left is counted.
    """
    if erasure.of_deleted:
        return
    actor = Actor(erasure.requested_by, erasure.address)
    groups = Group.objects.select_related("stream__workspace").filter(stream__stream_id=erasure.stream_id)
    erasure.dead_letters = erasure.dead_letters or 0
    for group in groups.order_by("id"):
        erasure.dead_letters += dead_letters_erase(
            group,
            erasure=erasure.pk,
            actor=actor,
            offset=erasure.offset,
            key=erasure.key,
            up_to=erasure.up_to,
        )
        erasure.save(update_fields=["dead_letters"])


def erasure_done(erasure: Erasure, *, messages: int, through: int) -> None:
    """It is out of the history; its key is forgotten here, too."""
    erasure.messages, erasure.through = messages, through
    naming = windows_naming(erasure.stream_id, key=erasure.key)
    with transaction.atomic():
        windows_forget(erasure.stream_id, offset=erasure.offset, key=erasure.key, naming=naming)
        _ended(erasure, RunState.SUCCEEDED)


def erasure_failed(erasure: Erasure, *, error: str) -> None:
    """It could not be done; some of it may be."""
    erasure.error = storable(error)
    _ended(erasure, RunState.FAILED)


def erasures_refuse(*, reason: str) -> int:
    """End what nothing will work on, with the reason; returns how many."""
    waiting = list(Erasure.objects.filter(state__in=UNFINISHED))
    for erasure in waiting:
        erasure_failed(erasure, error=reason)
    return len(waiting)


def _ended(erasure: Erasure, state: RunState) -> None:
    erasure.state, erasure.key, erasure.finished_at = state, "", timezone.now()
    with transaction.atomic():
        # Whose it is changes where its workspace is deleted meanwhile.
        erasure.save(
            update_fields=["state", "key", "finished_at", "messages", "dead_letters", "through", "error"]
        )
        erasure.refresh_from_db(fields=["workspace", "deleted_workspace"])
        _recorded(erasure, "done" if state == RunState.SUCCEEDED else "failed")


def _recorded(erasure: Erasure, verb: str) -> None:
    # Events are for ever, and a key may be what has to be forgotten: so they have its digest only.
    what = "a key" if erasure.key_sha256 else "everything"
    if erasure.offset is not None:
        what = f"offset {erasure.offset:,}"
    whose = f"deleted streams named {erasure.stream}" if erasure.of_deleted else erasure.stream
    if erasure.deleted_workspace:
        whose = f"{whose if erasure.stream else 'all streams'} of the deleted workspace {erasure.deleted_workspace}"
    event_record(
        erasure.workspace,
        kind=f"history.erasure_{verb}",
        actor=Actor(erasure.requested_by, erasure.address),
        stream=erasure.stream,
        after={
            "erasure": erasure.pk,
            "deleted": erasure.of_deleted,
            "deleted_workspace": erasure.deleted_workspace or None,
            "offset": erasure.offset,
            "key_sha256": erasure.key_sha256 or None,
            "up_to": erasure.up_to,
            "messages": erasure.messages,
            "dead_letters": erasure.dead_letters,
            "through": erasure.through,
        },
        summary=f"Erasure {erasure.pk} of {what} from the history of {whose} {went(verb)}.",
    )
