"""The palette: streams, groups, pages and actions, also among ten thousand streams; and the page of the system."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.views.stream_page import TABS
from streams.access import SYSTEM
from streams.models import Stream, Workspace
from streams.services.groups import group_create
from tests.costs import cost_of
from tests.dashboard.conftest import MakeStream
from tests.dashboard.verdicts import judged

MANY = 10_000


def found(client: Client, question: str) -> list[tuple[str, str]]:
    hits = client.get("/search/", {"q": question}).context["hits"]
    return [(hit.kind, hit.text) for hit in hits]


def test_streams_and_groups_are_found_by_a_part_of_their_name(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders.eu")
    make_stream("eu")
    group_create(stream, name="europe", settings={}, actor=SYSTEM)
    assert found(owner, "eu")[:3] == [
        ("stream", "eu"),
        ("stream", "orders.eu"),
        ("group", "orders.eu / europe"),
    ]
    for question in ("orders eur", "orders.eu / europe"):
        assert found(owner, question) == [("group", "orders.eu / europe")]
    assert found(owner, "eu orders") == []


def test_every_page_leads_to_the_documentation_of_the_api(observer: Client) -> None:
    for path in ("/", "/streams/", "/profile/"):
        assert f'href="{reverse("api:docs")}">API documentation</a>' in observer.get(path).content.decode()


def test_pages_and_actions_are_found_by_their_words(viewer: Client, owner: Client) -> None:
    assert found(owner, "new st") == [("action", "New stream")]
    assert ("page", "Events") in found(owner, "")
    (forbidden,) = viewer.get("/search/", {"q": "new st"}).context["hits"]
    assert (forbidden.url, forbidden.needs) == ("", "operator")


def lines(client: Client, question: str) -> list[tuple[str, str, str]]:
    """Kind, text and where each line leads."""
    return [(hit.kind, hit.text, hit.url) for hit in client.get("/search/", {"q": question}).context["hits"]]


def test_dead_letters_lead_to_the_groups_that_have_some(
    viewer: Client, observer: Client, stranger: Client, make_stream: MakeStream
) -> None:
    orders = make_stream("orders", bodies=[b"1"])
    for name, dead in ("audit", 0), ("billing", 2), ("mail", 7):
        group_create(orders, name=name, settings={}, actor=SYSTEM)
        judged(orders, name, "ok", dead=dead)
    everywhere = ("page", "Dead letters of all groups", "/groups/?sort=-dead")
    for question in ("dead", "Dead letters"):
        assert lines(viewer, question) == [
            ("Dead letters", "orders / mail", "/streams/orders/groups/mail/dead-letters/"),
            ("Dead letters", "orders / billing", "/streams/orders/groups/billing/dead-letters/"),
            everywhere,
        ]
    assert lines(observer, "dead") == lines(stranger, "dead") == [everywhere]
    group = "/streams/orders/groups/audit/dead-letters/"
    for question in ("dead audit", "audit dead letters"):
        assert lines(viewer, question) == [("Dead letters", "orders / audit", group)]
    (refused,) = observer.get("/search/", {"q": "dead audit"}).context["hits"]
    assert (refused.url, refused.needs) == ("", "viewer")


@pytest.mark.parametrize(
    ("question", "kind", "text", "url"),
    [
        ("lag billing", "Lag", "orders.eu / billing", "/streams/orders.eu/groups/billing/"),
        ("bill in fl", "In flight", "orders.eu / billing", "/streams/orders.eu/groups/billing/pending/"),
        (
            "billing settings",
            "Settings",
            "orders.eu / billing",
            "/streams/orders.eu/groups/billing/settings/",
        ),
        ("orders retention", "Retention", "orders.eu", "/streams/orders.eu/retention/"),
        ("publish orders", "Publish", "orders.eu", "/streams/orders.eu/publish/"),
        ("orders messages", "Messages", "orders.eu", "/streams/orders.eu/"),
        ("orders tail", "Tail", "orders.eu", "/streams/orders.eu/tail/"),
        ("orders purge", "Purge", "orders.eu", "/streams/orders.eu/purge/"),
        ("ORDERS Settings", "Settings", "orders.eu", "/streams/orders.eu/settings/"),
        ("lag", "page", "Lag of all groups", "/groups/?sort=-lag"),
    ],
)
def test_a_page_of_a_stream_or_a_group_is_found_by_its_words_with_a_name(
    owner: Client, make_stream: MakeStream, question: str, kind: str, text: str, url: str
) -> None:
    group_create(make_stream("orders.eu"), name="billing", settings={}, actor=SYSTEM)
    assert lines(owner, question) == [(kind, text, url)]
    assert owner.get(url).status_code == 200


def test_every_tab_of_a_stream_is_found(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    for _, address, label, _ in TABS:
        assert (str(label), "orders", reverse(address, args=["orders"])) in lines(owner, f"orders {label}")


def test_a_page_by_name_is_no_one_else_s(stranger: Client, make_stream: MakeStream) -> None:
    group_create(make_stream("orders"), name="billing", settings={}, actor=SYSTEM)
    assert lines(stranger, "orders retention") == lines(stranger, "lag billing") == []


def test_a_stranger_finds_nothing_of_ours(stranger: Client, make_stream: MakeStream) -> None:
    group_create(make_stream("orders"), name="orders-billing", settings={}, actor=SYSTEM)
    assert found(stranger, "orders") == []


@pytest.mark.long
def test_ten_thousand_streams_cost_a_few_statements_and_a_bounded_list(
    owner: Client, workspace: Workspace
) -> None:
    Stream.objects.bulk_create(
        Stream(workspace=workspace, name=f"s{number:05}", stream_id=f"{number:012}") for number in range(MANY)
    )
    cost = cost_of(lambda: owner.get("/search/", {"q": "s0"}))
    assert (cost.commands, cost.statements < 10) == (0, True)
    assert len(found(owner, "s0")) == 8
    Stream.objects.all().delete()


def test_the_list_alone_is_for_the_dialog_and_keeps_markup_inert(owner: Client) -> None:
    answer = owner.get("/search/", {"q": "<script>"}, headers={"HX-Request": "true"})
    assert b"<html" not in answer.content
    assert b"&lt;script&gt;" in answer.content


def test_the_system_page_says_what_runs_and_what_a_publish_is(owner: Client) -> None:
    page = owner.get("/settings/system/").content.decode()
    assert "on disk before the response" in page
    assert "django" in page


def test_the_store_s_figures_say_their_age_and_are_asked_for_again_alone(owner: Client) -> None:
    asked_again = 'hx-get="/settings/system/"'
    assert asked_again in owner.get("/settings/system/").content.decode()
    part = owner.get("/settings/system/", headers={"HX-Request": "true"}).content.decode()
    assert "on disk before the response" in part
    assert re.search(r"checked <time [^>]*data-age[^>]*>now<", part)
    assert "<html" not in part
    assert asked_again not in part


def test_the_store_s_figures_are_for_those_who_rule_all(stranger: Client) -> None:
    page = stranger.get("/settings/system/").content.decode()
    assert "This needs the role admin in the workspace default." in page
    assert "on disk before the response" not in page
