"""Times at the edges of the calendar, which programs write for "always" and "never", break no page in any zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from dashboard import formats, quantities
from streams.access import SYSTEM
from streams.models import AlertRule, Replay, Stream, Token
from streams.services.tokens import token_create
from streams.upkeep.alerting import Alerting
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import make_group

EDGES = [
    ("9999-12-31T23:00:00Z", "9999-12-31T23:59:59Z"),
    ("9999-12-31T22:00:00Z", "9999-12-31T22:30:00Z"),
    ("0001-01-01T00:10:00Z", "0001-01-01T00:20:00Z"),
    ("0001-01-01", "9999-12-31T23:59:59Z"),
    ("0002-01-01", "0099-01-01"),
    ("9950-01-01", "9999-12-31"),
    ("739000 d ago", ""),
    ("0", "1"),
    ("9999-12-31 23:59", "9999-12-31 23:59:59"),
    ("0001-01-01 00:00", "0001-01-01 00:01"),
]
ZONES = ["UTC", "America/New_York", "Pacific/Kiritimati", "Pacific/Niue"]
PARTS = {"HX-Request": "true"}


@pytest.fixture
def orders(make_stream: MakeStream) -> Stream:
    stream = make_stream("orders", bodies=[b"1", b"2"])
    make_group(stream, "billing")
    return stream


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("since", "until"), EDGES)
def test_a_time_at_the_edge_breaks_no_page(
    owner: Client, orders: Stream, since: str, until: str, zone: str
) -> None:
    owner.cookies["okmq_zone"] = zone
    pages = [
        ("/streams/orders/", {"start": "time", "at": since, "until": until}),
        ("/streams/orders/", {"at": since, "until": until}),
        ("/streams/orders/history/", {"range": "custom", "since": since, "until": until, "compare": "1"}),
        ("/streams/orders/rates/", {"since": since, "until": until}),
        ("/streams/orders/activity/", {"since": since, "until": until}),
        ("/streams/orders/purge/", {"what": "time", "at": since}),
        ("/streams/orders/groups/billing/", {"since": since, "until": until}),
        ("/streams/orders/groups/billing/", {"position": "timestamp", "at": since}),
        ("/events/", {"since": since, "until": until}),
        ("/", {"since": since, "until": until}),
    ]
    for address, query in pages:
        for headers in ({}, PARTS):
            assert owner.get(address, query, headers=headers).status_code < 500, (address, query)


@pytest.mark.parametrize(("since", "until"), EDGES)
def test_a_moment_that_is_typed_lies_where_all_zones_and_steps_have_room(since: str, until: str) -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    for text in filter(None, (since, until)):
        moment = quantities.parse_moment(text, now=now)
        assert quantities.EARLIEST <= moment <= quantities.LATEST


@pytest.mark.parametrize("zone", ZONES)
def test_a_moment_beyond_the_calendar_is_said_as_the_last_that_it_has(zone: str) -> None:
    never = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp() * 1000)
    with timezone.override(ZoneInfo(zone)):
        for ms in (never, never + 1, 10 * never):
            assert formats.iso(ms).startswith("9999-12-31T23:59:59.")
            assert formats.iso(ms).endswith("Z")
            assert formats.moment(ms).startswith("9999-12-31 ")
            assert formats.iso_local(ms).startswith("9999-12-31T")
        assert formats.iso(-62_135_596_800_000) == "0001-01-01T00:00:00.000Z"
        assert formats.moment(-62_135_596_800_000)[:8] in ("0001-01-", "0000-12-")


@pytest.mark.parametrize(
    "never", [datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)]
)
@pytest.mark.parametrize("zone", ZONES)
def test_what_was_set_to_the_edge_over_the_api_is_shown_in_every_zone(
    owner: Client, orders: Stream, zone: str, never: datetime
) -> None:
    token_create(orders.workspace, name="never", scopes=["read"], actor=SYSTEM, expires_at=None)
    Token.objects.filter(name="never").update(expires_at=never)
    owner.post("/alerts/", {"name": "lags", "stream": "orders", "watch": "lag", "limit": "1", "lasting": ""})
    Alerting().look(now_s=0)
    AlertRule.objects.update(muted_until=never)
    Replay.objects.create(
        workspace=orders.workspace,
        source="orders",
        source_id=orders.stream_id,
        target="orders",
        target_id=orders.stream_id,
        since=never,
        until=never,
    )
    owner.cookies["okmq_zone"] = zone
    for address in ("/settings/tokens/", "/alerts/", "/alerts/lags/"):
        assert owner.get(address).status_code == 200, address
    replays = owner.get("/streams/orders/history/replays/", headers=PARTS)
    assert replays.status_code == 200
    assert f"{never.year:04}-" in replays.content.decode()
