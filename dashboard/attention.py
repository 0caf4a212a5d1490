"""What needs a person: each a sentence with a link, the worst first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from dashboard import formats
from dashboard.groups.group_rows import DOTS
from dashboard.stream_rows import StreamRow
from streams.selectors import JudgedGroup, Sampling
from streams.upkeep.processes import ProcessStatus

# A restart is worth a word for a while, not for ever.
RESTART_TOLD_FOR_S = 3600
ALIKE_SHOWN = 3
"""Of so many groups of a stream with the same trouble each has a row; more are one."""


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing that needs attention; ``level`` is ``bad`` or ``warn``."""

    level: str
    sentence: str
    url: str = ""


def concerns(
    *,
    processes: Iterable[ProcessStatus],
    seen: Sampling,
    rows: Sequence[StreamRow],
    groups: Sequence[JudgedGroup],
    now_s: float,
    firing: int = 0,
) -> list[Concern]:
    """What is wrong now, or was lately; ``groups`` are those in trouble, and so many alerts are firing."""
    found = [
        *_of_sampling(seen),
        *_of_alerts(firing),
        *_of_processes(processes, now_s=now_s),
        *_of_streams(rows),
        *_of_groups(groups),
    ]
    return sorted(found, key=lambda concern: concern.level != "bad")


def _of_sampling(seen: Sampling) -> list[Concern]:
    if seen.is_going_on:
        return []
    since = "yet" if seen.silent_s is None else f"for {formats.duration(seen.silent_s)}"
    sentence = f"The worker has not sampled {since}: rates and group status are unknown, alerts are on hold."
    return [Concern("bad", sentence, reverse("dashboard:system"))]


def _of_alerts(firing: int) -> list[Concern]:
    if not firing:
        return []
    sentence = f"{formats.count(firing)} alerts are firing." if firing > 1 else "An alert is firing."
    return [Concern("bad", sentence, reverse("dashboard:alerts"))]


def _of_processes(processes: Iterable[ProcessStatus], *, now_s: float) -> list[Concern]:
    found = []
    for process in processes:
        if process.state == "unavailable":
            found.append(Concern("warn", f"{process.name} is not running: {process.note}"))
        elif process.state == "restarting":
            found.append(Concern("bad", f"{process.name} is being restarted: {process.note}"))
        elif process.restarts and now_s - process.since < RESTART_TOLD_FOR_S:
            found.append(Concern("warn", f"{process.name} {process.sentence(now=now_s)}."))
    return found


def _of_streams(rows: Sequence[StreamRow]) -> list[Concern]:
    found = []
    for row in rows:
        used = row.retention.used
        if used is None or not row.retention.will_refuse:
            continue
        what = (
            "is full and refuses new messages" if used >= 1 else "is nearly full and will refuse new messages"
        )
        found.append(
            Concern(
                "bad" if used >= 1 else "warn",
                f"{row.name} {what}: {int(used * 100)} % of its limit is used.",
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
        f"Group {group.name} of {group.stream} is {group.verdict.status}: {group.verdict.reason}",
        reverse("dashboard:group", args=[group.stream, group.name]),
    )


def _folded(groups: Sequence[JudgedGroup]) -> Concern:
    worst, status = groups[0], groups[0].verdict.status
    count = formats.count(len(groups))
    return Concern(
        _level(worst),
        f"{count} groups of {worst.stream} are {status}; the worst, {worst.name}: {worst.verdict.reason}",
        reverse("dashboard:stream_groups", args=[worst.stream]) + f"?{urlencode({'status': status})}",
    )


def _level(group: JudgedGroup) -> str:
    return "bad" if DOTS[group.verdict.status] == "bad" else "warn"
