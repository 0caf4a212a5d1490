"""One time zone for tables, charts, pickers and files."""

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from dashboard import formats, quantities
from streams.models import Rollup
from tests.dashboard.conftest import MakeStream
from tests.dashboard.test_exports import content

ZONES = json.loads(Path(__file__).with_name("zones.json").read_text("utf-8"))


@pytest.mark.parametrize(("ms", "zone", "said"), ZONES)
def test_a_moment_is_said_on_the_clocks_of_a_zone(ms: int, zone: str, said: str) -> None:
    with timezone.override(ZoneInfo(zone)):
        assert formats.moment(ms) == said


def test_what_is_typed_without_a_zone_is_meant_in_the_active_one() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    with timezone.override(ZoneInfo("Europe/Berlin")):
        assert quantities.parse_moment("2026-11-21 08:05", now=now) == datetime(
            2026, 11, 21, 7, 5, tzinfo=UTC
        )
        with_zone = quantities.parse_moment("2026-11-21T08:05Z", now=now)
    assert with_zone == datetime(2026, 11, 21, 8, 5, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
def test_a_moment_is_typed_as_a_page_says_it(zone: str) -> None:
    at = datetime(2026, 11, 21, 7, 5, 53, 123_000, tzinfo=UTC)
    with timezone.override(ZoneInfo(zone)):
        said = formats.moment(int(at.timestamp() * 1000))
        assert quantities.parse_moment(said, now=at) == at
    with timezone.override(ZoneInfo("Asia/Tokyo")):
        assert quantities.parse_moment(said, now=at) == at, "in its own zone, wherever it is pasted"


@pytest.mark.parametrize(
    "written", ["2026-11-21 07:05 CET", "2026-11-21 07:05 UTC UTC", "2026-11-21 +01:00", " UTC"]
)
def test_another_zone_than_pages_say_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="Enter a time"):
        quantities.parse_moment(written, now=datetime(2026, 11, 21, tzinfo=UTC))


@pytest.mark.parametrize(
    ("choice", "browser", "zone"),
    [
        (None, None, "UTC"),
        (None, "Europe/Berlin", "Europe/Berlin"),
        ("browser", "Asia/Kathmandu", "Asia/Kathmandu"),
        ("UTC", "Europe/Berlin", "UTC"),
        ("America/New_York", "Europe/Berlin", "America/New_York"),
        ("../../etc/passwd", "/etc/passwd", "UTC"),
    ],
)
def test_the_choice_wins_over_the_browser(
    owner: Client, choice: str | None, browser: str | None, zone: str
) -> None:
    if browser:
        owner.cookies["okmq_browser_zone"] = browser
    if choice:
        owner.cookies["okmq_zone"] = choice
    assert f'data-zone="{zone}"' in owner.get("/streams/").content.decode()


def test_the_choice_is_remembered_and_shown(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", bodies=[b"1"])
    assert owner.post("/zone/", {"zone": "Asia/Kathmandu"}).status_code == 302
    at = int(stream.created_at.timestamp() * 1000)
    with timezone.override(ZoneInfo("Asia/Kathmandu")):
        said, written = formats.moment(at), formats.iso_local(at)
    assert said in owner.get("/streams/orders/settings/").content.decode()
    assert written.endswith("+05:45")
    assert written in owner.get("/streams/_export/").content.decode()
    assert b"+05:45" in content(owner.get("/streams/orders/export/?format=csv"))
    assert b"+05:45" not in content(owner.get("/streams/orders/export/?format=ndjson"))
    assert b"+05:45" in content(owner.get("/events/export/?format=csv"))


def test_a_zone_that_is_none_is_refused(owner: Client) -> None:
    answer = owner.post("/zone/", {"zone": "Mars/Olympus"}, follow=True)
    assert b"There is no such time zone" in answer.content
    assert "okmq_zone" not in owner.cookies


@pytest.mark.parametrize("path", ["", "tail/", "history/?range=1h"])
def test_a_heading_names_the_zone_that_its_column_is_in(
    owner: Client, make_stream: MakeStream, path: str
) -> None:
    stream = make_stream("orders", bodies=[b"1"])
    minute = stream.created_at.replace(second=0, microsecond=0)
    Rollup.objects.create(stream_id=stream.stream_id, step="minute", start=minute, messages=1, bytes=1)
    owner.cookies["okmq_zone"] = "Asia/Kathmandu"
    shown = owner.get(f"/streams/orders/{path}").content.decode()
    assert "(Asia/Kathmandu)" in shown
    assert "UTC" not in shown


def test_an_undo_says_until_when_on_the_clocks_of_the_zone(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"])
    owner.cookies["okmq_zone"] = "Asia/Kathmandu"
    owner.post("/streams/_bulk/?do=purge&stream=orders", {"seen": "1"})
    page = owner.get("/streams/orders/")
    until = page.context["removals"][0].until.astimezone(ZoneInfo("Asia/Kathmandu"))
    assert f"{until:%H:%M} Asia/Kathmandu</time>" in page.content.decode()
