"""What failed of the history needs attention on the overview: runs for everybody, why and replays for who may see."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from streams.models import Replay, ReplayState, Run, Stream
from tests.dashboard.conftest import MakeStream


@pytest.fixture(autouse=True)
def history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, history=True))


def ran(state: str, *, job: str = "rollup", minutes: int = 0, error: str = "") -> Run:
    """A run that ended so many minutes ago."""
    at = timezone.now() - timedelta(minutes=minutes)
    return Run.objects.create(job=job, state=state, error=error, started_at=at, finished_at=at)


def replayed(stream: Stream, state: ReplayState = ReplayState.FAILED, **more: Any) -> Replay:
    """A replay of a stream into itself that ended five minutes ago."""
    known = {"workspace": stream.workspace, "source": stream.name, "source_id": stream.stream_id}
    known |= {"target": stream.name, "target_id": stream.stream_id, "requested_by": "ann"}
    known |= {"error": "The target is full." if state == ReplayState.FAILED else ""}
    at = timezone.now() - timedelta(minutes=5)
    return Replay.objects.create(**{**known, "state": state, "finished_at": at, **more})


def told(client: Client) -> list[tuple[str, str, str]]:
    """Level, sentence and address of each concern; ages in whole minutes, however long the test took to ask."""
    found = client.get("/").context["concerns"]
    return [(each.level, re.sub(r"( min) \d+ s ago", r"\1 ago", each.sentence), each.url) for each in found]


def test_runs_that_failed_since_the_last_that_succeeded_are_one_concern(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders")
    ran("failed", minutes=90, error="Of long ago.")
    ran("succeeded", minutes=80)
    for minutes in range(8, 0, -1):
        run = ran("failed", minutes=minutes * 5, error=f"ArithmeticError: {minutes} is no number.\n at once")
    page = f"/streams/orders/history/?runs=failed&run={run.pk}#runs"
    said = (
        "The last 8 rollup runs of the history failed, the first 40 min ago: ArithmeticError: 1 is no number."
    )
    assert told(owner) == [("bad", said, page)]
    assert f"#{run.pk} rollup" in owner.get(page).content.decode()
    ran("queued")
    assert len(told(owner)) == 1, "and while the next waits"
    ran("succeeded")
    assert told(owner) == []


def test_one_run_that_failed_is_a_notice_of_each_job(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    for job in ("archive", "rollup", "compact"):
        ran("failed", job=job, minutes=3, error="No space left. " * 30)
    found = told(owner)
    assert [level for level, _, _ in found] == ["warn"] * 3
    assert found[0][1].startswith("The last archive run of the history failed 3 min ago: No space left. No")
    assert len(found[0][1]) < 300
    ids = re.findall(r'id="(concern-[^"]*)"', owner.get("/").content.decode())
    assert len(ids) == len(set(ids)) == 3


def test_why_a_run_failed_is_no_other_workspaces_to_see(stranger: Client) -> None:
    ran("failed", minutes=3, error="A body of somebody else.")
    assert told(stranger) == [("warn", "The last rollup run of the history failed 3 min ago.", "")]


def test_an_observer_is_told_that_a_run_failed_and_nothing_of_what_it_met(
    observer: Client, make_stream: MakeStream
) -> None:
    replayed(make_stream("orders"))
    ran("failed", minutes=3, error="A body.")
    assert told(observer) == [("warn", "The last rollup run of the history failed 3 min ago.", "")]


def test_what_failed_before_the_history_was_switched_off_needs_nobody(
    owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran("failed", error="No space left.")
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, history=False))
    assert told(owner) == []


def test_a_replay_that_failed_needs_attention_until_somebody_looks_after_it(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    replay = replayed(stream, from_offset=3)
    for _ in range(7):
        replayed(stream, ReplayState.SUCCEEDED, from_offset=1)
    (level, said, page) = told(viewer)[0]
    assert (level, said) == ("bad", f"Replay {replay.pk} of orders failed 5 min ago: The target is full.")
    assert f"#{replay.pk} <bdi>orders" in viewer.get(page).content.decode()
    for state in (ReplayState.CANCELLED, ReplayState.RUNNING, ReplayState.SUCCEEDED):
        Replay.objects.filter(pk=replay.pk).update(state=state)
        assert told(viewer) == [], state


@pytest.mark.parametrize(
    ("state", "is_over"),
    [(ReplayState.SUCCEEDED, True), (ReplayState.RUNNING, True), (ReplayState.CANCELLED, False)],
)
def test_a_replay_that_was_asked_for_once_more_is_over(
    viewer: Client, make_stream: MakeStream, state: ReplayState, is_over: bool
) -> None:
    stream = make_stream("orders")
    replayed(stream, key="a")
    replayed(stream, state, key="b")
    assert len(told(viewer)) == 1, "another range"
    replayed(stream, state, key="a")
    assert told(viewer) == [] if is_over else len(told(viewer)) == 1


def test_replays_of_a_stream_that_failed_are_one_concern(viewer: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    for number in range(4):
        newest = replayed(stream, from_offset=number)
    [(_, said, _)] = told(viewer)
    assert said == f"4 replays of orders failed, the newest, {newest.pk}, 5 min ago: The target is full."


def test_replays_of_another_workspace_or_of_streams_that_are_gone_are_not_told(
    viewer: Client, stranger: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    replayed(stream)
    assert len(told(viewer)) == 1
    assert told(stranger) == []
    replayed(stream, source="gone", target="away", key="other")
    assert len(told(viewer)) == 1
