"""The replays of a stream on its History tab: which stand there, and what can be done with each."""

import re

from django.test import Client

from streams.models import Replay, ReplayState, Stream
from streams.services.replays import replay_counted, replay_failed
from tests.dashboard.conftest import MakeStream


def test_a_second_click_does_not_start_what_is_counted_again(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert owner.post("/streams/orders/history/", {"target": "orders"}).status_code == 302
    replay = Replay.objects.get()
    replay_failed(replay, error="Spark is away.")
    start = f"/streams/orders/history/replays/{replay.pk}/start/"
    assert owner.post(start).status_code == 302
    assert b"This replay is counting; it cannot be started." in owner.post(start, follow=True).content
    replay_counted(replay, messages=10, size=99, first=1, last=10)
    replay.refresh_from_db()
    assert (replay.state, replay.starts) == ("ready", False)


PART = "/streams/orders/history/replays/"


def replay_in(stream: Stream, state: ReplayState, *, target: str = "orders") -> int:
    """A replay of the stream, in this state; its number."""
    replay = Replay.objects.create(
        workspace=stream.workspace,
        source=stream.name,
        source_id=stream.stream_id,
        target=target,
        target_id=stream.stream_id,
        state=state,
        requested_by="ann",
        total=None if state == ReplayState.COUNTING else 10,
    )
    return replay.pk


def numbers(page: str) -> list[int]:
    """The numbers of the replays that a page or part has, in their order."""
    return [int(found) for found in re.findall(r'<td class="nowrap">#(\d+) <bdi>orders', page)]


def test_those_that_have_not_finished_stand_first_whatever_came_after_them(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    unfinished = [
        replay_in(stream, state)
        for state in (ReplayState.COUNTING, ReplayState.READY, ReplayState.RUNNING, ReplayState.PAUSED)
    ]
    finished = [
        replay_in(stream, state)
        for state in (ReplayState.FAILED, ReplayState.SUCCEEDED, ReplayState.CANCELLED) * 5
    ]
    page = owner.get("/streams/orders/history/").content.decode()
    assert numbers(page) == [*reversed(unfinished), *list(reversed(finished))[:6]]
    for number, do in zip(unfinished, ("cancel", "start", "pause", "start"), strict=True):
        assert f"{PART}{number}/{do}/" in page
    part = owner.get(PART, headers={"HX-Request": "true"}).content.decode()
    assert numbers(part) == numbers(page)
    assert "okmq:second" in part


def test_those_that_have_finished_have_pages_that_stay_when_they_are_asked_for_again(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    finished = [replay_in(stream, ReplayState.SUCCEEDED) for _ in range(14)][::-1]
    ready = replay_in(stream, ReplayState.READY)
    address, seen = "/streams/orders/history/?range=7d", []
    while address:
        page = owner.get(address).content.decode()
        shown = numbers(page)
        assert shown[0] == ready
        seen += shown[1:]
        again = re.search(rf'hx-get="({PART}[^"]*)"', page)
        assert again
        part = owner.get(again[1].replace("&amp;", "&"), headers={"HX-Request": "true"}).content.decode()
        assert numbers(part) == shown
        older = re.search(r'id="replays-older" rel="next" href="([^"#]*)#replays"', part)
        address = older[1].replace("&amp;", "&") if older else ""
        assert "range=7d" in (address or "range=7d")
    assert seen == finished
    assert 'id="replays-newest"' in part
    beyond = owner.get(f"/streams/orders/history/?replays_before={finished[-1]}").content.decode()
    assert numbers(beyond) == [ready]
    assert owner.get("/streams/orders/history/?replays_before=x").status_code == 200


def test_replays_of_other_streams_do_not_stand_there(owner: Client, make_stream: MakeStream) -> None:
    stream, other = make_stream("orders"), make_stream("other")
    mine = replay_in(stream, ReplayState.READY, target="again")
    replay_in(other, ReplayState.READY, target="again")
    assert numbers(owner.get("/streams/orders/history/").content.decode()) == [mine]


LONG = "Its condition cannot be used: " + "a cause of it; " * 60 + "and the last word."


def opened(page: str, replay: int) -> str:
    """Where the link below an error leads; empty where there is none."""
    found = re.search(rf'id="replay-{replay}-error"[^>]* href="([^"#]*)#replays"', page)
    return found[1].replace("&amp;", "&") if found else ""


def test_the_whole_error_is_opened_and_stays_open(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    failed, short = (replay_in(stream, ReplayState.COUNTING) for _ in range(2))
    replay_failed(Replay.objects.get(pk=failed), error=LONG)
    replay_failed(Replay.objects.get(pk=short), error="Stream b was deleted.")
    page = owner.get("/streams/orders/history/?range=7d").content.decode()
    assert LONG not in page
    assert LONG[:290] in page
    assert not opened(page, short)
    whole = owner.get(opened(page, failed)).content.decode()
    assert LONG in whole
    assert "range=7d" in opened(whole, failed)
    asked = re.search(rf'hx-get="({PART}[^"]*)"', whole)
    assert asked
    again = owner.get(asked[1].replace("&amp;", "&"), headers={"HX-Request": "true"}).content.decode()
    assert LONG in again
    assert LONG not in owner.get(opened(again, failed)).content.decode()
