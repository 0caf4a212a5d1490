"""The list of a group's dead letters: a page of its own, which every page of the group counts and leads to."""

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from streams import selectors, store
from streams.access import SYSTEM
from streams.log import groups
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import AlertRule, Group
from streams.services.alerts import alert_begin, rule_create
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import LETTERS, PAGE, bury, fetched, letters, make_group
from tests.dashboard.verdicts import judged
from tests.findings import over
from tests.waiting import until


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    """Three dead letters, and two messages in flight."""
    group = make_group(make_stream("orders", bodies=[b"1"] * 9))
    bury(group, count=3)
    fetched(group, limit=2)
    return group


def tabs(page: str) -> list[str]:
    (found,) = re.findall(r'<nav class="group-tabs".*?</nav>', page, re.DOTALL)
    return [" ".join(strip_tags(each).split()) for each in re.findall(r"<a .*?</a>", found, re.DOTALL)]


@pytest.mark.parametrize("path", ["", "pending/", "dead-letters/", "settings/", "activity/"])
def test_every_page_of_a_group_leads_to_its_dead_letters_and_counts_them(
    viewer: Client, billing: Group, path: str
) -> None:
    page = viewer.get(f"{PAGE}{path}").content.decode()
    assert tabs(page) == ["Overview", "In flight 2", "Dead letters 3", "Settings", "Activity"]
    assert f'href="{LETTERS}"' in page
    assert re.search(
        rf'href="{LETTERS}".*?data-live="group:orders/billing" data-field="dead_letters"', page, re.DOTALL
    )


def test_the_list_is_on_its_own_page_and_not_below_the_overview(viewer: Client, billing: Group) -> None:
    assert 'id="dead-letters"' not in viewer.get(PAGE).content.decode()
    page = viewer.get(LETTERS)
    assert [each.letter.offset for each in page.context["letters"]] == [1, 2, 3]
    assert f'href="{LETTERS}" aria-current="page"' in page.content.decode()


def test_lists_of_groups_lead_to_them(viewer: Client, billing: Group) -> None:
    for page in ("/streams/orders/groups/", "/groups/"):
        assert f'href="{LETTERS}"' in viewer.get(page).content.decode()


def test_a_letter_leads_back_to_the_list_and_a_replay_ends_there(owner: Client, billing: Group) -> None:
    assert f'href="{LETTERS}"' in owner.get(f"{LETTERS}2/").content.decode()
    assert owner.post(f"{LETTERS}replay/", {"offset": "2"})["Location"] == LETTERS


def test_the_id_and_the_key_of_a_letter_have_copy_buttons(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    store.log().run(append(stream.stream_id, [NewMessage(id="m1", body=b"1", key="eu.7")]))
    bury(make_group(stream), count=1)
    for path in (f"{LETTERS}1/", f"{LETTERS}?open=1"):
        page = owner.get(path).content.decode()
        for what, text in (("id", "m1"), ("key", "eu.7")):
            assert re.search(rf'data-copy-source>{text}</bdi><button[^>]* title="Copy the {what}"', page)


def test_the_keys_reach_the_rows_and_the_filter(viewer: Client, billing: Group) -> None:
    for path, rows in (("dead-letters/", 3), ("pending/", 2)):
        page = viewer.get(f"{PAGE}{path}").content.decode()
        assert len(re.findall(r"<a [^>]*data-row", page)) == rows
        assert len(re.findall(r"<input [^>]*data-search", page)) == 1


@pytest.mark.parametrize("query", ["?reason=no", "?after=1", "?after=1&reason=no", ""])
def test_a_replay_in_a_row_stays_on_the_page_it_was_on(owner: Client, billing: Group, query: str) -> None:
    page = owner.get(f"{LETTERS}{query}")
    told = re.search(
        r'<input type="hidden" name="next" value="([^"]*)">\s*<button[^>]*name="offset"',
        page.content.decode(),
    )
    assert told
    sent = {"offset": "2", "next": html.unescape(told[1])}
    assert owner.post(f"{LETTERS}replay/", sent)["Location"] == f"{LETTERS}{query}"


def offsets(page: Any) -> list[int]:
    return [each.letter.offset for each in page.context["letters"]]


def test_the_newest_first_page_by_page(viewer: Client, make_stream: MakeStream) -> None:
    group = make_group(make_stream("orders", bodies=[b"1"] * 60))
    bury(group, count=60)
    first = viewer.get(LETTERS, {"order": "newest"})
    assert offsets(first) == list(range(60, 10, -1))
    (following,) = re.findall(r'href="([^"]*)" rel="next"', first.content.decode())
    assert offsets(viewer.get(f"{LETTERS}{html.unescape(following)}")) == list(range(10, 0, -1))
    assert offsets(viewer.get(LETTERS, {"order": "newest", "reason": "no", "after": "5"})) == [4, 3, 2, 1]
    assert offsets(viewer.get(LETTERS, {"order": "oldest"})) == list(range(1, 51))


def test_the_filter_goes_and_the_order_stays_and_the_command_has_it(viewer: Client, billing: Group) -> None:
    page = viewer.get(f"{LETTERS}?order=newest&reason=no&after=3").content.decode()
    assert '<a class="btn btn-sm btn-link" href="?order=newest">Show all</a>' in page
    assert "dead-letters/?order=newest&amp;after=3" in page
    assert "order=" not in viewer.get(LETTERS).content.decode().split("As curl and Python")[1]


@pytest.mark.parametrize(("dead", "has_more"), [(3, False), (4, False), (5, True)])
def test_a_bounded_look_says_when_it_left_some(
    make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch, dead: int, has_more: bool
) -> None:
    monkeypatch.setattr("streams.selectors.letters.LETTERS_LOOKED_AT", 4)
    monkeypatch.setattr("streams.selectors.letters.LETTERS_READ", 2)
    group = make_group(make_stream("orders", bodies=[b"1"] * 9))
    bury(group, count=dead)
    assert selectors.dead_letters_matching(group, "") == ([1, 2, 3, 4][:dead], has_more)


def test_what_is_open_stands_in_the_address(viewer: Client, billing: Group) -> None:
    page = viewer.get(f"{LETTERS}?after=1&open=3&open=1&open=7&open=x")
    content = page.content.decode()
    assert (page.context["opened"], page.context["gone"]) == ([3], [7])
    assert [each.letter.offset for each in page.context["apart"]] == [1]
    assert content.count('data-row aria-expanded="true"') == 1
    assert "Dead letter 7, which was open here, was replayed or deleted." in content
    assert content.count(">Link to this dead letter</a>") == 2


def test_what_reached_max_deliveries_says_so_and_is_found_by_it(
    viewer: Client, make_stream: MakeStream
) -> None:
    group = make_group(make_stream("orders", bodies=[b"1"] * 2), max_deliver=1)
    fetched(group, limit=1)
    store.log().run(groups.nack(group.stream.stream_id, "billing", "offsets", [1]))
    until(lambda: (fetched(group, limit=1), letters(group))[1])
    for reason in ("", "Max deliveries", "max_deliver"):
        page = viewer.get(LETTERS, {"reason": reason}).content.decode()
        assert '<td class="key" title="max_deliver"><bdi>max deliveries reached</bdi></td>' in page


@pytest.mark.parametrize("path", ["pending/", "dead-letters/"])
def test_pages_of_a_group_say_as_of_when_its_status_is(viewer: Client, billing: Group, path: str) -> None:
    judged(billing.stream, "billing", "ok", pending=2)
    page = viewer.get(f"{PAGE}{path}").content.decode()
    assert re.search(r'data-field="judged_ms"[^>]*data-value="null">as of ', page)


def test_an_alert_on_dead_letters_leads_to_them(viewer: Client, billing: Group) -> None:
    rule = rule_of(billing)
    alert_begin(rule, value=3.0, finding=over("dead_letters", 3.0, limit=1.0))
    page = viewer.get("/alerts/").content.decode()
    assert (
        f'<a href="{LETTERS}" data-row><bdi>Group billing of orders: dead letters 3, above 1.</bdi>' in page
    )


def rule_of(group: Group) -> AlertRule:
    settings = {"stream": "orders", "group": "billing", "watch": "dead_letters", "limit": 1.0}
    return rule_create(group.stream.workspace, name="dead", settings=settings, actor=SYSTEM)


def reasons(page: Any) -> list[tuple[str, str, bool]]:
    """The reasons above the list: where each leads, what it says, whether the list is of it."""
    shown = page.content.decode().partition('aria-label="Most frequent reasons">')[2].partition("</div>")[0]
    links = re.findall(r'<a href="([^"]*)"( aria-current="true")?[^>]*>(.*?)</a>', shown)
    return [(html.unescape(at), html.unescape(strip_tags(text)), bool(on)) for at, on, text in links]


def test_the_most_frequent_reasons_stand_above_the_list_and_lead_to_their_letters(
    viewer: Client, make_stream: MakeStream
) -> None:
    group = make_group(make_stream("orders", bodies=[b"1"] * 20))
    for count, why in ((3, "No <b>price"), (2, "no <b>price for EU\u202e"), (1, ""), (1, "max_deliver")):
        bury(group, count=count, why=why)
    page = viewer.get(LETTERS, {"order": "newest", "open": "2"})
    assert [(text, on) for _at, text, on in reasons(page)] == [
        ("No <b>price 5", False),
        ("no <b>price for EU\\u202e 2", False),
        ("max deliveries reached 1", False),
    ]
    assert "no reason given 1" in strip_tags(page.content.decode())
    (first, *_) = reasons(page)
    narrowed = viewer.get(f"{LETTERS}{first[0]}")
    assert offsets(narrowed) == [5, 4, 3, 2, 1]
    assert [on for *_, on in reasons(narrowed)] == [True, False, False]
    assert "of the newest" not in page.content.decode()


def test_only_so_many_letters_are_looked_at_for_their_reasons(
    viewer: Client, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = make_group(make_stream("orders", bodies=[b"1"] * 60))
    for number in range(60):
        bury(group, count=1, why=f"no customer {number:02}")
    page = viewer.get(LETTERS).content.decode()
    assert ("55 other reasons" in page, "of the newest" in page) == (True, False)
    monkeypatch.setattr("streams.selectors.letters.REASONS_OF", 30)
    page = viewer.get(LETTERS).content.decode()
    assert ("25 other reasons" in page, "of the newest 30" in page) == (True, True)
    monkeypatch.setattr("streams.selectors.letters.REASONS_BYTES", 10)
    assert "of the newest 20" in viewer.get(LETTERS).content.decode()


def test_a_group_without_dead_letters_has_no_reasons(viewer: Client, make_stream: MakeStream) -> None:
    make_group(make_stream("orders", bodies=[b"1"]))
    assert "Most frequent reasons" not in viewer.get(LETTERS).content.decode()
