"""The demonstration that a button starts: it publishes, it is bounded, it is stopped."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from okmq.demo.feed import DemoFeed
from streams import selectors
from streams.models import DemoRun, Event, Stream, Workspace
from streams.services.demos import A_SECOND, demos_feed
from tests.dashboard.conftest import MakeStream


def messages() -> int:
    return selectors.stream_view(Stream.objects.get(name="demo")).state.messages


@pytest.fixture(scope="module")
def feed() -> DemoFeed:
    return DemoFeed()


def test_a_button_fills_a_stream_with_flights_until_another_stops_it(owner: Client, feed: DemoFeed) -> None:
    assert b"Start live demo" in owner.get("/").content
    owner.post("/demo/start/")
    assert b"The demo is publishing flights to" in owner.get("/").content
    assert [demos_feed(feed.departures), demos_feed(feed.departures)] == [1, 1]
    assert messages() == 2 * A_SECOND
    assert b"flights." in owner.get("/streams/demo/").content
    owner.post("/demo/stop/")
    assert demos_feed(feed.departures) == 0
    assert messages() == 2 * A_SECOND


def test_an_open_overview_follows_the_demo(owner: Client, feed: DemoFeed) -> None:
    def part() -> str:
        return owner.get("/", headers={"HX-Request": "true"}).content.decode()

    assert '<div id="demo" hx-swap-oob="true"></div>' in part()
    owner.post("/demo/start/")
    assert "The demo is publishing flights to" in part()
    owner.post("/demo/stop/")
    assert '<div id="demo" hx-swap-oob="true"></div>' in part()


def test_a_demo_ends_by_itself(owner: Client, feed: DemoFeed) -> None:
    owner.post("/demo/start/")
    DemoRun.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    assert demos_feed(feed.departures) == 0
    assert not DemoRun.objects.exists()
    assert list(Event.objects.filter(kind__startswith="demo.").values_list("kind", flat=True)) == [
        "demo.ended",
        "demo.started",
    ]


def test_what_is_fed_twice_is_stored_once(owner: Client, feed: DemoFeed) -> None:
    owner.post("/demo/start/")
    demos_feed(feed.departures)
    DemoRun.objects.update(published=0)
    demos_feed(feed.departures)
    assert messages() == A_SECOND


def test_a_second_demo_goes_on_with_messages_of_its_own(owner: Client, feed: DemoFeed) -> None:
    for _ in range(2):
        owner.post("/demo/start/")
        demos_feed(feed.departures)
        owner.post("/demo/stop/")
    assert messages() == 2 * A_SECOND


def test_a_stream_of_that_name_of_somebody_s_own_stays_theirs(
    owner: Client, workspace: Workspace, make_stream: MakeStream
) -> None:
    make_stream("demo", bodies=[b"1"])
    assert owner.post("/demo/start/").status_code == 409
    assert not DemoRun.objects.exists()


def test_a_deleted_stream_ends_its_demo(owner: Client, feed: DemoFeed) -> None:
    owner.post("/demo/start/")
    owner.post("/streams/demo/delete/", {"confirm": "demo", "seen": "1000000"})
    assert demos_feed(feed.departures) == 0


def test_a_viewer_sees_the_button_and_what_it_needs(viewer: Client) -> None:
    assert 'disabled title="This needs the role operator."' in viewer.get("/").content.decode()


def test_after_the_last_departure_of_the_year_comes_the_first(feed: DemoFeed) -> None:
    assert feed.departures(336_776, 1) == feed.departures(0, 1)
