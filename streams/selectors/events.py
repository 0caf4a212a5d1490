"""What happened."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Q, QuerySet
from django.db.models.fields.json import KT

from streams.access import Caller
from streams.models import (
    DEFAULT_WORKSPACE,
    Event,
    Stream,
    Workspace,
)
from streams.selectors.narrowing import inside

EVERYDAY = ("message.deleted", "group.terminated", "group.lost", "group.dead_lettered", "stream.expired")
"""What clients and retention do to single messages, all the time: no turns in a stream's life."""

MOST_LOOKED_AT = 2_000


def newest_events(*, above: int) -> dict[int, int]:
    """The id of the newest event of each workspace, by the workspace's key, as far as it is above this one.

    Events of no workspace count for the default one, where they are shown.
    """
    found = (
        Event.objects.filter(id__gt=above).order_by().values_list("workspace_id").annotate(newest=Max("id"))
    )
    newest: dict[int | None, int] = dict(found)
    of_none = newest.pop(None, None)
    if of_none is not None:  # asked for each second: seldom is there one
        for default in Workspace.objects.filter(name=DEFAULT_WORKSPACE).values_list("pk", flat=True):
            newest[default] = max(of_none, newest.get(default, 0))
    return {pk: newest_id for pk, newest_id in newest.items() if pk is not None}


def newest_event(caller: Caller) -> int:
    """The id of the newest event that a caller may see; 0 where nothing happened."""
    return _seen_by(caller).order_by("-id").values_list("id", flat=True).first() or 0


def stream_turns(
    caller: Caller,
    stream: Stream,
    *,
    since: datetime | None,
    until: datetime,
    limit: int,
    group: str | None = None,
) -> list[Event]:
    """What was done to a stream in a span of time, newest first; not what clients do to messages all the time.

    Of more events than ``MOST_LOOKED_AT`` in the span, the newest are looked at.

    Args:
        group: only what concerns this group, or the stream as a whole.
    """
    wanted = _seen_by(caller).filter(stream=stream.name, time__lt=until)
    if since is not None:
        wanted = wanted.filter(time__gte=since)
    if group is not None:
        wanted = wanted.filter(group__in=("", group))
    return list(_turns(wanted)[:limit])


def workspace_turns(caller: Caller, *, since: datetime, until: datetime, limit: int) -> list[Event]:
    """What was done to the streams of a workspace and to the processes in a span of time, as ``stream_turns``; of the
    newest ``MOST_LOOKED_AT`` events, so it is for spans that ended lately.
    """
    found = _turns(_seen_by(caller)).filter(time__gte=since, time__lt=until)
    return list(found.filter(~Q(stream="") | Q(kind__startswith="process."))[:limit])


def _turns(wanted: QuerySet[Event]) -> QuerySet[Event]:
    looked_at = wanted.order_by("-id").values("pk")[:MOST_LOOKED_AT]
    return Event.objects.filter(pk__in=looked_at).exclude(kind__in=EVERYDAY).order_by("-id")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsWanted:
    """Which events; what is empty does not narrow.

    Attributes:
        about: the name of an alert rule, a person or a token.
        kind: a kind, or with a dot at its end all that begin so (``stream.``); several are separated by commas.
        since, until: a span of time, ``until`` excluded.
        before, after: ids: those below, newest first, or those above, oldest first; None is the newest.
    """

    actor: str = ""
    about: str = ""
    kind: str = ""
    stream: str = ""
    group: str = ""
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    after: int | None = None


def events_found(caller: Caller, wanted: EventsWanted, *, limit: int) -> list[Event]:
    """Events that a caller may see and that match, newest first."""
    caller.demand("read")
    found = _matching(_seen_by(caller), wanted)
    if wanted.after is not None:
        return list(found.filter(id__gt=wanted.after).order_by("id")[:limit])[::-1]
    if wanted.before is not None:
        found = found.filter(id__lt=wanted.before)
    return list(found.order_by("-id")[:limit])


def _matching(found: QuerySet[Event], wanted: EventsWanted) -> QuerySet[Event]:
    if wanted.stream:
        found = found.filter(stream=wanted.stream)
    if wanted.kind:
        of_kinds = Q()
        for each in wanted.kind.split(","):
            of_kinds |= Q(kind__startswith=each) if each.endswith(".") else Q(kind=each)
        found = found.filter(of_kinds)
    if wanted.actor:
        found = found.filter(actor__icontains=wanted.actor)
    if wanted.about:
        found = found.filter(_about(wanted.about))
    if wanted.group:
        found = found.filter(group=wanted.group)
    if wanted.since is not None:
        found = found.filter(time__gte=wanted.since)
    if wanted.until is not None:
        found = found.filter(time__lt=wanted.until)
    return found


def _about(name: str) -> Q:
    """What tells of a rule, a person or a token of this name: before, after or both hold it."""
    of_rule = Q(kind__startswith="alert") & (Q(after__rule=name) | Q(before__rule=name))
    of_others = Q(kind__startswith="user.") | Q(kind__startswith="token.")
    return of_rule | (of_others & (Q(after__name=name) | Q(before__name=name)))


def events_page(
    caller: Caller, wanted: EventsWanted, *, limit: int, workspace: str = ""
) -> tuple[list[Event], bool]:
    """Events that a caller may see and that match, ascending by id: those after an id, or the newest; and whether more
    came later.

    Args:
        workspace: for an admin of the default workspace another one's name, also one that was deleted.

    Raises:
        Refusal: ``forbidden`` for another workspace that the caller does not rule.
    """
    if workspace and workspace != caller.workspace.name:
        caller.demand_rule()
        found = Event.objects.filter(workspace=workspace)
    else:
        found = _seen_by(caller)
    found = _matching(found, wanted)
    if wanted.after is None:
        return list(found.order_by("-id")[:limit])[::-1], False
    rows = list(found.filter(id__gt=wanted.after).order_by("id")[: limit + 1])
    return rows[:limit], len(rows) > limit


def _seen_by(caller: Caller) -> QuerySet[Event]:
    """Events of the caller's workspace; those of none, of the whole system, are shown in the default one.

    A narrowed caller sees those of its streams only, and no replay out of another one.
    """
    mine = Q(workspace_id=caller.workspace.pk)
    if caller.workspace.name == DEFAULT_WORKSPACE:
        mine |= Q(workspace_id=None)
    found = Event.objects.filter(mine)
    if caller.streams:
        source = inside(caller.streams, KT("after__source"))
        found = found.filter(inside(caller.streams, "stream")).exclude(stream="")
        found = found.filter(~Q(kind__startswith="history.replay_") | source)
    return found
