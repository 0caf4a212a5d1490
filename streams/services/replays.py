"""Replays: asked for, counted, started, paused, carried on, ended; the analytics process does the work.

Most are published into a stream. One for a group has its messages brought to that group alone
(``streams.log.bringing``); it is over once the group is moved or deleted.
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from streams import store
from streams.access import SYSTEM, Actor, Caller, group_for, stream_for
from streams.errors import Refusal, refusal_of
from streams.log import bringing
from streams.log.errors import GroupNotFound, StoreUnavailable
from streams.models import Group, Replay, ReplayState, Stream
from streams.selectors import Gone
from streams.services.events import event_record
from streams.services.storable import storable
from streams.services.summaries import went
from streams.services.turns import next_turn
from streams.services.workspace_lock import workspace_held

MOST_UNFINISHED = 10
"""Replays of one workspace that are counted or published at a time."""

MOST_HELD = 100
"""Replays of one workspace that have not ended: beside these, those that wait to be started or rest."""

MOST_RATE = 1_000_000
LONGEST_WHERE = 4_000
WORKING = (ReplayState.COUNTING, ReplayState.RUNNING)
WAITING = (ReplayState.READY, ReplayState.PAUSED)
STARTABLE = (*WAITING, ReplayState.FAILED)
ENDED = (ReplayState.SUCCEEDED, ReplayState.CANCELLED)
UNENDED = (*WORKING, *STARTABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWanted:
    """What is to be published again: see ``Replay``."""

    from_offset: int | None = None
    to_offset: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    key: str = ""
    where: str = ""
    keeps_ids: bool | None = None
    rate: int | None = None
    starts: bool = True


def replay_request(caller: Caller, *, source: str, target: str, wanted: ReplayWanted) -> Replay:
    """Have a range counted, and published again once it is counted or when somebody starts it.

    Messages keep their ids unless told otherwise, but not into the very stream that they are from: it would know most.

    Raises:
        Refusal: ``forbidden`` without the scopes ``manage``, ``read`` of the source and ``publish`` of the target;
            ``stream_not_found``, ``operation_denied`` into a sealed stream, ``history_off``, ``rate_limited``,
            ``replay_state`` where too many wait.
    """
    caller.demand("manage")
    origin, into = stream_for(caller, source, may="read"), stream_for(caller, target, may="publish")
    if into.sealed:
        raise Refusal("operation_denied", f"Stream {into.name!r} is sealed: it is read-only.", err_code=10109)
    _demand_history()
    keeps_ids = origin.pk != into.pk if wanted.keeps_ids is None else wanted.keeps_ids
    return _asked(caller, origin, into, wanted=wanted, keeps_ids=keeps_ids)


def replay_for_group(caller: Caller, *, stream: str, group: str, wanted: ReplayWanted) -> Replay:
    """Have a range counted, and brought to one group alone once it is counted or when somebody starts it.

    Raises:
        Refusal: ``forbidden`` without the scopes ``manage`` and ``read`` of the stream; ``stream_not_found``,
            ``group_not_found``, ``history_off``, ``rate_limited``, ``replay_state`` where too many wait.
        StoreUnavailable: its server does not answer.
    """
    found = group_for(caller, stream, group, may="manage")
    origin = stream_for(caller, stream, may="read")
    _demand_history()
    try:
        generation = store.log().run(bringing.generation(origin.stream_id, found.name))
    except GroupNotFound as error:
        raise refusal_of(error, group=group) from None
    return _asked(
        caller, origin, origin, wanted=wanted, keeps_ids=True, group=found.name, generation=generation
    )


def wanted_of(gone: Gone, *, starts: bool) -> ReplayWanted:
    """What a seek leaves behind, as a replay brings it."""
    return ReplayWanted(
        from_offset=gone.from_offset, since=gone.since, to_offset=gone.to_offset, starts=starts
    )


def replay_demand(caller: Caller, *, stream: str) -> None:
    """That a replay for a group of a stream could be asked for now.

    Raises:
        Refusal: as asking for it.
    """
    caller.demand("manage")
    stream_for(caller, stream, may="read")
    _demand_history()
    with transaction.atomic():
        _demand_room(caller)
        _demand_place(caller)


def _demand_history() -> None:
    if not settings.ENV.history:
        raise Refusal("history_off", "The history is switched off (OKMQ_HISTORY=off).")


def _asked(
    caller: Caller,
    origin: Stream,
    into: Stream,
    *,
    wanted: ReplayWanted,
    keeps_ids: bool,
    group: str = "",
    generation: int | None = None,
) -> Replay:
    with transaction.atomic():
        _demand_room(caller)
        _demand_place(caller)
        replay = Replay.objects.create(
            workspace=caller.workspace,
            source=origin.name,
            source_id=origin.stream_id,
            target=into.name,
            target_id=into.stream_id,
            group=group,
            generation=generation,
            from_offset=wanted.from_offset,
            to_offset=wanted.to_offset,
            since=wanted.since,
            until=wanted.until,
            key=wanted.key,
            where=wanted.where,
            keeps_ids=keeps_ids,
            rate=wanted.rate,
            starts=wanted.starts,
            requested_by=caller.actor.name[:200],
            address=caller.actor.address[:64],
        )
        _recorded(replay, "requested", actor=caller.actor)
    return replay


def replay_start(caller: Caller, replay: Replay) -> None:
    """Begin to publish what was counted, or go on after a pause or a failure; one whose count failed is counted again.

    Raises:
        Refusal: ``replay_state``; ``forbidden`` without the scopes that asking for it needs; ``stream_not_found``;
            ``rate_limited``.
    """
    caller.demand("manage")
    stream_for(caller, replay.source, may="read")
    if replay.group:
        group_for(caller, replay.source, replay.group, may="manage")
    else:
        stream_for(caller, replay.target, may="publish")
    held = Replay.objects.filter(pk=replay.pk)
    with transaction.atomic():
        if held.filter(state__in=STARTABLE).exists():
            _demand_room(caller)
        if held.filter(state=ReplayState.FAILED).exists():
            _demand_place(caller)
        # What failed before it was counted is counted again, and waits: nobody has seen yet how much it is.
        moved = held.filter(state=ReplayState.FAILED, total=None).update(
            state=ReplayState.COUNTING, starts=False, error="", finished_at=None
        )
        # While it counts, it is told not to wait; not by who saw it failed, and asked twice.
        if not moved and replay.state == ReplayState.COUNTING:
            moved = held.filter(state=ReplayState.COUNTING).update(starts=True)
        moved = moved or held.filter(state__in=STARTABLE).update(
            state=ReplayState.RUNNING, error="", finished_at=None
        )
        _demand(moved, replay, "started")
        _recorded(replay, "started", actor=caller.actor)


def replay_pause(replay: Replay, *, actor: Actor) -> None:
    """Let it rest after the messages that are just being published.

    Raises:
        Refusal: ``replay_state``.
    """
    held = Replay.objects.filter(pk=replay.pk, state=ReplayState.RUNNING)
    with transaction.atomic():
        _demand(held.update(state=ReplayState.PAUSED, waits_for=""), replay, "paused")
        _recorded(replay, "paused", actor=actor)


def replay_cancel(replay: Replay, *, actor: Actor) -> None:
    """End it for good; what was published stays. One that has ended is let be."""
    _cancelled(replay, actor=actor)


def replays_overtaken(group: Group, *, actor: Actor, why: str) -> None:
    """End those that were to bring a group something, which is moved or deleted."""
    unfinished = Replay.objects.exclude(state__in=ENDED).select_related("workspace")
    for replay in unfinished.filter(source_id=group.stream.stream_id, group=group.name):
        _cancelled(replay, actor=actor, why=why)


def replay_lapsed(replay: Replay, *, why: str) -> None:
    """End one that waits or rests, and that nobody has touched for long."""
    _cancelled(replay, actor=SYSTEM, why=why, of=WAITING)


def _cancelled(replay: Replay, *, actor: Actor, why: str = "", of: Collection[ReplayState] = UNENDED) -> None:
    held = Replay.objects.filter(pk=replay.pk, state__in=of)
    with transaction.atomic():
        if held.update(state=ReplayState.CANCELLED, waits_for="", error=why, finished_at=timezone.now()):
            replay.refresh_from_db()
            _recorded(replay, "cancelled", actor=actor)
            if replay.group:
                transaction.on_commit(partial(_forgotten, replay))


def _forgotten(replay: Replay) -> None:
    """Its group need not know any more how far it came; of one that is moved or deleted that goes anyway."""
    with suppress(StoreUnavailable):
        store.log().run(bringing.forget(replay.source_id, replay.group, replay=replay.pk))


def replay_next(*, under_way: Collection[int]) -> Replay | None:
    """The replay whose turn it is to be worked on, beside those that are; None where there is none.

    Args:
        under_way: the ids of those that somebody works on.
    """
    waiting = _working().exclude(pk__in=under_way).values_list("pk", "workspace_id")
    busy = Replay.objects.filter(pk__in=under_way).values_list("workspace_id", flat=True)
    turn = next_turn(waiting, busy, most=MOST_UNFINISHED)
    return None if turn is None else _working().select_related("workspace").filter(pk=turn).first()


def replay_counted(replay: Replay, *, messages: int, size: int, first: int, last: int) -> None:
    """Fix what a count found; now it is ready, or running."""
    held = Replay.objects.filter(pk=replay.pk, state=ReplayState.COUNTING)
    with transaction.atomic():
        starts = held.select_for_update().values_list("starts", flat=True).first()
        held.update(
            total=messages,
            total_bytes=size,
            first=first,
            last=last,
            position=max(0, first - 1),
            sending_to=max(0, first - 1),
            state=ReplayState.RUNNING if starts else ReplayState.READY,
        )


def replay_begins(replay: Replay, *, target_offset: int) -> None:
    """Note where the target stands before the first message is published; once."""
    held = Replay.objects.filter(pk=replay.pk, started_at=None)
    held.update(started_at=timezone.now(), target_offset=target_offset)
    replay.refresh_from_db()


def replay_sending(replay: Replay, *, to: int) -> bool:
    """Note up to where messages are about to be published; whether that is still wanted."""
    held = Replay.objects.filter(pk=replay.pk, state=ReplayState.RUNNING)
    return bool(held.update(sending_to=to))


def replay_sent(
    replay: Replay, *, position: int, stored: int, duplicates: int, target_offset: int, sending_to: int
) -> bool:
    """Note what was published, and what will be next; whether that is still wanted."""
    with transaction.atomic():
        held = Replay.objects.filter(pk=replay.pk)
        state = held.select_for_update().values_list("state", flat=True).first()
        is_wanted = state == ReplayState.RUNNING
        held.update(
            position=position,
            sending_to=sending_to if is_wanted else position,
            stored=F("stored") + stored,
            duplicates=F("duplicates") + duplicates,
            target_offset=max(target_offset, replay.target_offset),
        )
    replay.refresh_from_db()
    return is_wanted


def replay_brought(replay: Replay, *, position: int, given: int, passed: int, waits_for: str = "") -> bool:
    """Note how far a replay has come with its group, as the group has it; whether it is still wanted."""
    held = Replay.objects.filter(pk=replay.pk)
    held.update(position=position, sending_to=position, stored=given, duplicates=passed)
    is_wanted = bool(held.filter(state=ReplayState.RUNNING).update(waits_for=waits_for))
    replay.refresh_from_db()
    return is_wanted


def replay_overtaken(replay: Replay, *, why: str) -> None:
    """Its group was moved or deleted meanwhile: it is over, and cannot be started again."""
    _cancelled(replay, actor=Actor(replay.requested_by, replay.address), why=why)


def replay_is_wanted(replay: Replay) -> bool:
    """Whether it still is to be counted or published."""
    return Replay.objects.filter(pk=replay.pk, state__in=WORKING).exists()


def replay_done(replay: Replay) -> None:
    """All of it is published."""
    _ended(replay, ReplayState.SUCCEEDED)


def replay_failed(replay: Replay, *, error: str) -> None:
    """It cannot go on; started again it goes on where it stopped."""
    _ended(replay, ReplayState.FAILED, error=storable(error))


def replays_refuse(*, reason: str) -> int:
    """End what nothing will work on, with the reason; returns how many. Started again later, they go on."""
    held = _working().select_related("workspace")
    for replay in held:
        replay_failed(replay, error=reason)
    return len(held)


def _working() -> QuerySet[Replay]:
    """What somebody has to work on, the oldest first."""
    return Replay.objects.filter(state__in=WORKING).order_by("id")


def _ended(replay: Replay, state: ReplayState, *, error: str = "") -> None:
    held = Replay.objects.filter(pk=replay.pk, state__in=WORKING)
    with transaction.atomic():
        if held.update(state=state, error=error, waits_for="", finished_at=timezone.now()):
            replay.refresh_from_db()
            _recorded(replay, state.value, actor=Actor(replay.requested_by, replay.address))


def _demand_room(caller: Caller) -> None:
    """That one more may be under way; until the transaction ends nobody else of the workspace is told so.

    Raises:
        Refusal: ``rate_limited``.
    """
    workspace_held(caller.workspace)
    working = Replay.objects.filter(workspace=caller.workspace, state__in=WORKING).count()
    if working >= MOST_UNFINISHED:
        raise Refusal(
            "rate_limited",
            f"{working} replays of this workspace are under way; wait for one, or cancel one.",
            headers={"Retry-After": "5"},
        )


def _demand_place(caller: Caller) -> None:
    """That one more may wait or rest, once ``_demand_room`` holds the workspace.

    Raises:
        Refusal: ``replay_state``.
    """
    held = Replay.objects.filter(workspace=caller.workspace, state__in=[*WORKING, *WAITING]).count()
    if held >= MOST_HELD:
        raise Refusal(
            "replay_state",
            f"{held} replays of this workspace are under way, wait to be started or are paused; cancel one.",
        )


def _demand(moved: int, replay: Replay, verb: str) -> None:
    if not moved:
        replay.refresh_from_db()
        raise Refusal(
            "replay_state", f"This replay is {replay.state}; it cannot be {verb}.", state=replay.state
        )


def _recorded(replay: Replay, verb: str, *, actor: Actor) -> None:
    counts = {"total": replay.total, "stored": replay.stored, "duplicates": replay.duplicates}
    event_record(
        replay.workspace,
        kind=f"history.replay_{verb}",
        actor=actor,
        stream=replay.target,
        group=replay.group,
        after={"replay": replay.pk, "source": replay.source, **counts},
        summary=f"Replay {replay.pk} of {replay.source} {replay.goal} {went(verb)}.",
    )
