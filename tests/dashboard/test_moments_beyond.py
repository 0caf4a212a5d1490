"""Moments that programs wrote at the edges of the calendar are shown in every zone; none breaks the page it is on."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.template import engines
from django.test import Client
from django.utils import timezone

from dashboard import formats
from streams.access import SYSTEM
from streams.models import AlertRule, Replay, Stream, Workspace
from streams.services.groups import group_pause
from streams.services.tokens import token_create
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import make_group

ZONES = ["UTC", "Europe/Berlin", "Asia/Tokyo", "America/New_York", "Pacific/Kiritimati"]
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@pytest.fixture
def orders(make_stream: MakeStream) -> Stream:
    return make_stream("orders", bodies=[b"1", b"2"])


@pytest.mark.parametrize("zone", ZONES)
def test_what_was_stored_with_such_a_moment_is_shown(
    owner: Client, workspace: Workspace, orders: Stream, zone: str
) -> None:
    Replay.objects.create(
        workspace=workspace,
        source="orders",
        source_id=orders.stream_id,
        target="orders",
        target_id=orders.stream_id,
        since=FIRST,
        until=LAST,
    )
    group_pause(make_group(orders), until=LAST, actor=SYSTEM)
    token_create(workspace, name="app", scopes=["read"], actor=SYSTEM, expires_at=LAST)
    AlertRule.objects.create(
        workspace=workspace, name="late", stream="*", watch="lag", limit=1, muted_until=LAST
    )
    owner.cookies["okmq_zone"] = zone
    for page, told in [
        ("/streams/orders/history/", "9999-12-31"),
        ("/streams/orders/groups/", "Paused until 9999-12-31"),
        ("/streams/orders/groups/billing/", "Paused until 9999-12-31"),
        ("/groups/", "Paused until 9999-12-31"),
        ("/settings/tokens/", "9999-12-31"),
        ("/alerts/", "muted until 9999-12-31"),
        ("/events/", ""),
        ("/", ""),
    ]:
        answer = owner.get(page)
        assert (answer.status_code, told in answer.content.decode()) == (200, True), page


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "asked",
    [
        "since=1000-01-01&compare=1",
        "since=738000%20d%20ago&compare=1",
        "since=0001-01-01",
        "since=0001-01-01&compare=1",
    ],
)
def test_a_range_from_the_beginning_of_the_calendar_is_compared(
    owner: Client, orders: Stream, asked: str, zone: str
) -> None:
    owner.cookies["okmq_zone"] = zone
    assert owner.get(f"/streams/orders/history/?{asked}").status_code == 200


@pytest.mark.parametrize("zone", ZONES)
def test_a_date_in_a_template_is_the_nearest_that_the_zone_has(zone: str) -> None:
    def said(text: str, moment: datetime | None) -> str:
        return engines["django"].from_string(text).render({"at": moment})

    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    with timezone.override(ZoneInfo(zone)):
        assert said("{{ at|date:'Y-m-d' }}", LAST) == "9999-12-31"
        assert said("{{ at|date:'Y' }}", FIRST) in ("0001", "1")
        assert said("{{ at|date:'c' }}", noon) == noon.astimezone(ZoneInfo(zone)).isoformat()
        assert said("{% load tz %}{{ at|utc|date:'H:i' }}", noon) == "12:00"
        assert said("{{ at|date:'H:i' }}", None) == ""
        assert formats.local(noon + timedelta(microseconds=1)).microsecond == 1
        for edge in (FIRST, LAST):
            assert abs(formats.local(edge).replace(tzinfo=None) - edge.replace(tzinfo=None)) <= timedelta(
                hours=14
            )
