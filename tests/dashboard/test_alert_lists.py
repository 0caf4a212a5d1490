"""The lists of the page of alerts: what fires and what is resolved, each counted in full and in pages."""

import re
import time
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from streams.models import Alert, AlertRule, Notification
from tests.dashboard.conftest import MakeStream

MANY = 600
MOST_S = 0.3


@pytest.fixture
def rule(owner: Client, make_stream: MakeStream) -> AlertRule:
    make_stream("orders")
    url = "https://example.org/hook"
    owner.post("/alerts/", {"name": "lags", "stream": "*", "watch": "lag", "limit": "2", "webhook_url": url})
    owner.get("/alerts/")  # the notice of its making is over
    return AlertRule.objects.get()


def alerts(rule: AlertRule, count: int, *, ended: bool, first: int = 0) -> None:
    """So many, each of a minute later than the one before, with a notification that was taken."""
    now = timezone.now()
    made = Alert.objects.bulk_create(
        Alert(
            rule=rule,
            stream=f"s{number}",
            group="g",
            began_at=now - timedelta(days=2) + timedelta(minutes=number),
            ended_at=now - timedelta(days=1) + timedelta(minutes=number) if ended else None,
            value=3,
            sentence=f"Group g of s{number}: lag 3.",
        )
        for number in range(first, first + count)
    )
    Notification.objects.bulk_create(
        Notification(alert=each, channel="webhook", body="{}", attempts=1, tried_at=now, delivered_at=now)
        for each in made
    )


def text_of(client: Client, path: str = "/alerts/") -> str:
    said = re.sub(r"<[^>]+>", " ", client.get(path).content.decode())
    return re.sub(r"\s+", " ", unescape(said))


def shown(client: Client, path: str, caption: str) -> list[str]:
    """The streams in a list of the page, by its caption."""
    page = client.get(path).content.decode()
    table = page.partition(f">{caption}</caption>")[2].partition("</table>")[0]
    return re.findall(r"Group g of (s\d+):", table)


def test_what_was_resolved_shows_whatever_fires(owner: Client, rule: AlertRule) -> None:
    alerts(rule, 1, ended=True)
    alerts(rule, 60, ended=False, first=100)
    assert shown(owner, "/alerts/", "Resolved alerts") == ["s0"]


def test_each_list_is_counted_in_full_and_goes_on(owner: Client, viewer: Client, rule: AlertRule) -> None:
    alerts(rule, 120, ended=False)
    alerts(rule, 70, ended=True, first=1000)
    page = text_of(viewer)
    assert "Firing now 120" in page
    assert "Resolved 70" in page
    assert ("1–50 of 120" in page, "1–50 of 70" in page) == (True, True)
    firing = [name for n in (1, 2, 3) for name in shown(owner, f"/alerts/?firing={n}", "Alerts firing now")]
    assert firing == [f"s{number}" for number in reversed(range(120))]
    ended = [
        name for n in (1, 2) for name in shown(owner, f"/alerts/?firing=2&resolved={n}", "Resolved alerts")
    ]
    assert ended == [f"s{number}" for number in reversed(range(1000, 1070))]
    last = viewer.get("/alerts/?firing=2&resolved=2").content.decode()
    assert 'href="?firing=3&amp;resolved=2" rel="next"' in last
    assert 'href="?firing=2&amp;resolved=1" rel="prev"' in last


@pytest.mark.parametrize("number", ["0", "-1", "x", "99"])
def test_a_page_that_is_none_is_the_nearest(owner: Client, rule: AlertRule, number: str) -> None:
    alerts(rule, 60, ended=False)
    expected = "s9" if number == "99" else "s59"
    assert shown(owner, f"/alerts/?firing={number}", "Alerts firing now")[0] == expected


def test_the_count_says_how_many_are_muted_as_the_menu_leaves_them_out(
    owner: Client, rule: AlertRule
) -> None:
    alerts(rule, 3, ended=False)
    assert "muted" not in text_of(owner).partition("Alerts firing now")[0]
    owner.post("/alerts/lags/mute/", {"seconds": "3600"})
    owner.get("/alerts/")
    assert "Firing now 3 · 3 muted" in text_of(owner)


def test_muting_or_turning_off_leads_back_to_the_page_where_it_was_done(
    owner: Client, rule: AlertRule
) -> None:
    alerts(rule, 60, ended=False)
    page = owner.get("/alerts/?firing=2").content.decode()
    forms = re.findall(
        r'action="/alerts/lags/(mute|switch)/"[^>]*><[^>]*><input [^>]*name="next" value="([^"]*)"', page
    )
    assert forms == [("mute", "/alerts/?firing=2")] * 10 + [("switch", "/alerts/?firing=2")]
    for path, sent in ("mute", {"seconds": "3600"}), ("switch", {"enabled": "off"}):
        answer = owner.post(f"/alerts/lags/{path}/", sent | {"next": "/alerts/?firing=2"})
        assert answer["Location"] == "/alerts/?firing=2"


def test_the_page_of_many_is_there_at_once(owner: Client, rule: AlertRule) -> None:
    alerts(rule, MANY, ended=False)
    alerts(rule, 5 * MANY, ended=True, first=10_000)
    took, size = [], 0
    for _ in range(5):
        began = time.process_time()
        size = len(owner.get("/alerts/").content)
        took.append(time.process_time() - began)
    assert min(took) < MOST_S
    assert size < 300_000
