"""What needs a person: each a sentence with a link, the worst first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats
from dashboard.groups.group_rows import DOTS
from dashboard.stream_rows import StreamRow
from streams.selectors import (
    DamagedPart,
    FailingReplay,
    FailingRuns,
    JudgedGroup,
    Sampling,
    ServersAway,
)
from streams.selectors.alerts import in_status
from streams.upkeep.processes import ProcessStatus

# A restart is worth a word for a while, not for ever.
RESTART_TOLD_FOR_S = 3600
ALL_THERE = ServersAway()
REASON_CHARS = 200
ALIKE_SHOWN = 3
"""Of so many groups of a stream with the same trouble each has a row; more are one."""


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing that needs attention; ``level`` is ``bad`` or ``warn``."""

    level: str
    sentence: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Failures:
    """What failed of the history, as far as somebody may see it.

    Attributes:
        stream: the one whose page shows the runs; empty is none.
        says_why: whether they may see why a run failed.
    """

    runs: Sequence[FailingRuns] = ()
    replays: Sequence[FailingReplay] = ()
    stream: str = ""
    says_why: bool = False


NO_FAILURES = Failures()


def concerns(
    *,
    processes: Iterable[ProcessStatus],
    seen: Sampling,
    rows: Sequence[StreamRow],
    groups: Sequence[JudgedGroup],
    now_s: float,
    firing: int = 0,
    damaged: Iterable[DamagedPart] = (),
    away: ServersAway = ALL_THERE,
    failures: Failures = NO_FAILURES,
) -> list[Concern]:
    """What is wrong now, or was lately; ``groups`` are those in trouble, and so many alerts are firing."""
    found = [
        *_of_away(away),
        *map(_of_damaged, damaged),
        *_of_sampling(seen),
        *_of_alerts(firing),
        *_of_processes(processes, now_s=now_s),
        *(_of_runs(each, failures, now_s=now_s) for each in failures.runs),
        *_of_replays(failures.replays, now_s=now_s),
        *_of_streams(rows),
        *_of_groups(groups),
    ]
    return sorted(found, key=lambda concern: concern.level != "bad")


def _of_sampling(seen: Sampling) -> list[Concern]:
    if seen.is_going_on:
        return []
    if seen.silent_s is None:
        sentence = _(
            "The worker has not sampled yet: rates and group status are unknown, alerts are on hold."
        )
    else:
        sentence = _(
            "The worker has not sampled for %(time)s: rates and group status are unknown, alerts are on hold."
        ) % {"time": formats.duration(seen.silent_s)}
    return [Concern("bad", sentence, reverse("dashboard:system"))]


def _of_away(away: ServersAway) -> list[Concern]:
    found = []
    if away.memory_since_ms is not None:
        moment = formats.moment(away.memory_since_ms // 1000 * 1000).replace(".000 ", " ")
        said = _(
            "The server of the streams in memory has not responded since %(moment)s: these streams are "
            "unavailable, and totals leave them out. All other streams work. If it does not recover, restart it; "
            "the messages that it held are lost then."
        )
        found.append(Concern("bad", said % {"moment": moment}, reverse("dashboard:system")))
    if away.nodes:
        said = ngettext(
            "%(count)s of the %(nodes)s nodes of the message store is not responding: its streams are unavailable, "
            "and totals leave them out. The streams of the other nodes work. Start it again, or have its replica "
            "promoted.",
            "%(count)s of the %(nodes)s nodes of the message store are not responding: their streams are unavailable, "
            "and totals leave them out. The streams of the other nodes work. Start them again, or have their replicas "
            "promoted.",
            away.nodes,
        )
        told = {"count": formats.count(away.nodes), "nodes": formats.count(away.of_nodes)}
        found.append(Concern("bad", said % told, reverse("dashboard:system")))
    return found


def _of_damaged(part: DamagedPart) -> Concern:
    told = {"stream": part.stream, "group": part.group, "reason": part.why}
    if not part.stream:
        return Concern("bad", _("Something that the message store holds cannot be read: %(reason)s") % told)
    if not part.group:
        said = _("Something that the message store holds of %(stream)s cannot be read: %(reason)s")
        return Concern("bad", said % told, reverse("dashboard:stream_messages", args=[part.stream]))
    said = _("Something that the message store holds of %(stream)s / %(group)s cannot be read: %(reason)s")
    return Concern("bad", said % told, reverse("dashboard:group", args=[part.stream, part.group]))


def _of_alerts(firing: int) -> list[Concern]:
    if not firing:
        return []
    sentence = ngettext("An alert is firing.", "%(count)s alerts are firing.", firing) % {
        "count": formats.count(firing)
    }
    return [Concern("bad", sentence, reverse("dashboard:alerts"))]


def _of_processes(processes: Iterable[ProcessStatus], *, now_s: float) -> list[Concern]:
    found = []
    for process in processes:
        named = {"name": process.name, "note": process.note}
        if process.state == "unavailable":
            found.append(Concern("warn", _("%(name)s is not running: %(note)s") % named))
        elif process.state == "restarting":
            found.append(Concern("bad", _("%(name)s is being restarted: %(note)s") % named))
        elif process.restarts and now_s - process.since < RESTART_TOLD_FOR_S:
            found.append(Concern("warn", _restarted(process, now_s=now_s)))
    return found


def _restarted(process: ProcessStatus, *, now_s: float) -> str:
    named = {"name": process.name, "note": process.note}
    if process.restarted_ms is None:  # it was ended since
        return _("%(name)s %(note)s.") % named
    age = _age(process.since, now_s=now_s)
    return _("%(name)s %(note)s, restarted %(time)s ago.") % (named | {"time": age})


def _of_runs(runs: FailingRuns, failures: Failures, *, now_s: float) -> Concern:
    """One may be of a moment, as it is run again; the next that fails, too, is not."""
    said = ngettext(
        "The last %(job)s run of the history failed %(time)s ago",
        "The last %(count)s %(job)s runs of the history failed, the first %(time)s ago",
        runs.count,
    ) % {
        "job": runs.job,
        "count": formats.count(runs.count),
        "time": _age(runs.since.timestamp(), now_s=now_s),
    }
    url = ""
    if failures.stream:
        url = (
            reverse("dashboard:stream_history", args=[failures.stream]) + f"?runs=failed&run={runs.last}#runs"
        )
    ended = f": {_short(runs.error)}" if failures.says_why else "."
    return Concern("bad" if runs.count > 1 else "warn", said + ended, url)


def _of_replays(failing: Iterable[FailingReplay], *, now_s: float) -> list[Concern]:
    """One a stream; ``failing`` are newest first."""
    by_stream: dict[str, list[FailingReplay]] = {}
    for each in failing:
        by_stream.setdefault(each.stream, []).append(each)
    return [_of_stream_replays(stream, found, now_s=now_s) for stream, found in by_stream.items()]


def _of_stream_replays(stream: str, found: Sequence[FailingReplay], *, now_s: float) -> Concern:
    newest = found[0].replay
    said = ngettext(
        "Replay %(number)s of %(stream)s failed %(time)s ago: %(reason)s",
        "%(count)s replays of %(stream)s failed, the newest, %(number)s, %(time)s ago: %(reason)s",
        len(found),
    )
    told = {
        "number": newest.pk,
        "stream": stream,
        "count": formats.count(len(found)),
        "time": _age((newest.finished_at or newest.created_at).timestamp(), now_s=now_s),
        "reason": _short(newest.error),
    }
    shown = urlencode({"replays_before": newest.pk + 1, "replay": newest.pk})
    return Concern(
        "bad", said % told, reverse("dashboard:stream_history", args=[stream]) + f"?{shown}#replays"
    )


def _age(since_s: float, *, now_s: float) -> str:
    return formats.duration(max(0, round(now_s - since_s)))


def _short(error: str) -> str:
    """The first line of an error, as far as a sentence has room for it."""
    return Truncator(error.strip().partition("\n")[0]).chars(REASON_CHARS)


def _of_streams(rows: Sequence[StreamRow]) -> list[Concern]:
    found = []
    for row in rows:
        used = row.retention.used
        if used is None or not row.retention.will_refuse:
            continue
        if used >= 1:
            said = _("%(name)s is full and refuses new messages: %(percent)d %% of its limit is used.")
        else:
            said = _(
                "%(name)s is nearly full and will refuse new messages: %(percent)d %% of its limit is used."
            )
        found.append(
            Concern(
                "bad" if used >= 1 else "warn",
                said % {"name": row.name, "percent": int(used * 100)},
                reverse("dashboard:stream_settings", args=[row.name]),
            )
        )
    return found


def _of_groups(groups: Sequence[JudgedGroup]) -> list[Concern]:
    """One a group; where several of a stream have the same trouble, one for all of them, in place of the worst."""
    alike: dict[tuple[str, str], list[JudgedGroup]] = {}
    for group in groups:
        alike.setdefault((group.stream, group.verdict.status), []).append(group)
    return [
        concern
        for same in alike.values()
        for concern in ([_folded(same)] if len(same) > ALIKE_SHOWN else map(_of_group, same))
    ]


def _of_group(group: JudgedGroup) -> Concern:
    return Concern(
        _level(group),
        in_status(group.stream, group.name, group.verdict).words(),
        reverse("dashboard:group", args=[group.stream, group.name]),
    )


def _folded(groups: Sequence[JudgedGroup]) -> Concern:
    worst, status = groups[0], groups[0].verdict.status
    said = _("%(count)s groups of %(stream)s are %(status)s; the worst, %(group)s: %(reason)s")
    return Concern(
        _level(worst),
        said
        % {
            "count": formats.count(len(groups)),
            "stream": worst.stream,
            "status": status,
            "group": worst.name,
            "reason": worst.verdict.reason,
        },
        reverse("dashboard:stream_groups", args=[worst.stream]) + f"?{urlencode({'status': status})}",
    )


def _level(group: JudgedGroup) -> str:
    return "bad" if DOTS[group.verdict.status] == "bad" else "warn"
