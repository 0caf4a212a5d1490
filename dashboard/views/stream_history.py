"""What Spark computed for a stream: charts by minute, hour or day, and the runs that computed it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from dashboard import timelines
from dashboard.history import heat
from dashboard.history.group_lags import group_lags_of
from dashboard.history.history_figures import top_keys_of
from dashboard.history.history_ranges import STEPS, Asked, RangeForm, asked_for, is_cut, steps_of
from dashboard.history.replay_forms import ReplayForm
from dashboard.views.door import console_form
from dashboard.views.stream_page import stream_context
from dashboard.views.stream_replays import ask, replays_context
from dashboard.views.stream_runs import runs_context
from streams import selectors
from streams.access import Caller
from streams.models import Rollup, RollupPosition, Stream
from streams.models.history import Step

SUMMED = ("messages", "bytes")


def seed_of(
    points: list[Rollup],
    *,
    step: str,
    since: datetime | None,
    until: datetime,
    before: list[Rollup] | None = None,
    shift: timedelta = timedelta(),
) -> dict[str, Any]:
    """The chart's columns: one bar a step, nought where nothing was published.

    Args:
        before: the period before, which began earlier by ``shift``.
    """
    seconds = STEPS[step][1]
    held = {int(point.start.timestamp()): point for point in points}
    first = (since or points[0].start) if points or since else until
    times = steps_of(first, until, step=step)
    seed: dict[str, Any] = {"step_s": seconds, "times": times}
    shifted = {int((point.start + shift).timestamp()): point for point in before or ()}
    for prefix, known in (("", held), *((("before_", shifted),) if before is not None else ())):
        seed[f"{prefix}messages"] = [known[at].messages if at in known else 0 for at in times]
        seed[f"{prefix}bytes"] = [known[at].bytes if at in known else 0 for at in times]
    for name in ("size_p50", "size_p99"):
        seed[name] = [getattr(held[at], name) if at in held else None for at in times]
    return seed


def sums_of(
    points: list[Rollup], before: list[Rollup] | None, asked: Asked, *, now: datetime
) -> dict[str, Any]:
    """What a range comes to; where that was asked for, beside the period before.

    Like stands beside like: a step that has not ended is left out of both sides; ``is_cut`` says so, and ``whole_…``
    what is left.
    """
    sums: dict[str, Any] = {name: sum(getattr(point, name) for point in points) for name in SUMMED}
    if before is None or asked.before is None:
        return sums
    ended = Step(asked.step).floor(now)
    for name in SUMMED:
        whole = sum(getattr(point, name) for point in points if point.start < ended)
        held = sum(getattr(point, name) for point in before if point.start + asked.shift < ended)
        sums |= {f"whole_{name}": whole, f"before_{name}": held, f"{name}_change": change_of(whole, held)}
    return sums | {"is_cut": any(point.start >= ended for point in points)}


@dataclass(frozen=True, slots=True)
class StepRow:
    """A row of the charts' table: a step, what the history counted in it and in that of the period before.

    Attributes:
        removed: messages that retention removed in it.
    """

    start: datetime
    point: Rollup | None
    before: Rollup | None
    removed: int


def rows_of(
    points: list[Rollup], before: list[Rollup] | None, asked: Asked, *, removed: Mapping[datetime, int]
) -> list[StepRow]:
    """The newest first; steps in which nothing was published, now and before, and nothing removed have none."""
    held = {point.start: point for point in points}
    shifted = {point.start + asked.shift: point for point in before or ()}
    return [
        StepRow(start, held.get(start), shifted.get(start), removed.get(start, 0))
        for start in sorted(held.keys() | shifted.keys() | removed.keys(), reverse=True)
    ]


def week_shown(stream: Stream, asked: Asked, *, counted_to: datetime | None) -> heat.Week | None:
    """The range, as far as all is counted, as a week of hours; nothing of a range that is shorter than one."""
    since = heat.begin_of(asked.since, asked.until)
    if since is None or counted_to is None:
        return None
    hours = selectors.hours_published(stream, since=since, until=asked.until)
    return heat.week_of(hours, until=min(asked.until, counted_to))


def counted_to(position: RollupPosition | None, *, last_offset: int | None, now: datetime) -> datetime | None:
    """Up to when all that was published is counted: up to now where nothing came since, else to the last that is.

    Args:
        last_offset: that of the stream; None while its store does not answer.
    """
    if last_offset is not None and last_offset <= (position.offset if position else 0):
        return now
    return position.fresh_to if position else None


def change_of(now: int, before: int) -> str:
    """How a sum stands to that of the period before: ``+12 %``, ``±0 %`` below a half; nothing where there was none."""
    if not before:
        return ""
    percent = round((now - before) / before * 100)
    return f"{percent:+,} %" if percent else "±0 %"


@console_form
def history(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Charts, their table, the runs, and what of the past is published again; a POST asks for that."""
    right = "manage" if request.method == "POST" else "read"
    context = stream_context(request, caller, name, tab="history", may=right)
    stream, now = context["stream"], timezone.now()
    replay_form = ReplayForm(request.POST or None, initial={"target": stream.name})
    if request.method == "POST" and ask(request, caller, stream, replay_form):
        return redirect("dashboard:stream_history", name=stream.name)
    context |= {"replay_form": replay_form, **replays_context(request, caller, stream)}
    form = RangeForm(request.GET, now=now)
    asked = asked_for(request.GET, now=now, span=form.span)
    points = selectors.history_points(stream, step=asked.step, since=asked.since, until=asked.until)
    before = None
    if asked.before:
        first, last = asked.before
        before = selectors.history_points(stream, step=asked.step, since=first, until=last)
    known = selectors.duplicates_by_step(stream, step=asked.step, since=asked.since, until=asked.until)
    removed = selectors.removed_by_step(stream, step=asked.step, since=asked.since, until=asked.until)
    context |= runs_context(request, caller, stream)
    known_to = counted_to(context["position"], last_offset=context["row"].offset, now=now)
    until_ms = int(asked.until.timestamp() * 1000)
    seed = seed_of(
        points, step=asked.step, since=asked.since, until=asked.until, before=before, shift=asked.shift
    )
    past_groups = selectors.groups_past(stream, step=asked.step, since=asked.since, until=asked.until)
    first_ms = seed["times"][0] * 1000 if points else until_ms
    turns = timelines.turns_of(caller, stream, since_ms=first_ms, until_ms=until_ms)
    context |= {
        "form": form,
        "asked": asked,
        "rows": rows_of(points, before, asked, removed=removed),
        "seed": seed | {"marks": [[at_ms / 1000, text] for at_ms, text in turns]},
        "turns": turns,
        "gaps": selectors.history_gaps(stream, since=asked.since, until=asked.until),
        "cut_to": len(seed["times"])
        if points and is_cut(asked.since or points[0].start, seed["times"])
        else 0,
        "sums": sums_of(points, before, asked, now=now),
        "largest": max((point.size_max or 0 for point in points), default=0),
        "top_keys": top_keys_of(points),
        "scan": selectors.scan_of(points),
        "week": week_shown(stream, asked, counted_to=known_to),
        "profile": selectors.profile_latest(stream, until=asked.until),
        "past_groups": past_groups,
        "groups_there": set(stream.groups.values_list("name", flat=True)),
        "group_lags": group_lags_of(
            past_groups,
            asked,
            first=points[0].start if points else None,
        ),
        "groups_position": selectors.standing_position(),
        "duplicates": sum(known.values()),
        "removed": sum(removed.values()),
        "since_ms": asked.since and int(asked.since.timestamp() * 1000),
        "until_ms": until_ms,
    }
    status = 422 if replay_form.errors else 200
    return render(request, "dashboard/stream/history.html", context, status=status)
