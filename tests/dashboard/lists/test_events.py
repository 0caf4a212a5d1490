"""The page of events: who, what and when, before and after, as a file."""

import csv
import io
import json
import re
from html import unescape

import pytest
from django.conf import settings
from django.test import Client
from django.utils.html import strip_tags

from dashboard.lists.event_rows import KINDS, PAGE_SIZE, Change, EventRow
from dashboard.views.events import NEWER_COUNTED
from streams.access import Actor
from streams.models import Event, Stream, Workspace
from streams.selectors import newest_events
from streams.services.chain_checks import chain_check_step
from streams.services.events import event_record
from streams.services.groups import group_create, group_delete
from streams.services.streams import stream_change, stream_delete
from tests.dashboard.conftest import MakeStream
from tests.dashboard.test_exports import content

ADA = Actor("ada", "192.0.2.1")


def shown(client: Client, query: str = "", *, page: str = "/events/") -> list[str]:
    return [row.event.summary for row in client.get(f"{page}{query}").context["rows"]]


@pytest.fixture
def happened(workspace: Workspace, make_stream: MakeStream) -> None:
    make_stream("orders")
    event_record(workspace, kind="stream.changed", actor=ADA, stream="orders", summary="Changed orders.")
    event_record(
        workspace, kind="group.sought", actor=ADA, stream="orders", group="billing", summary="Sought."
    )
    event_record(workspace, kind="token.created", actor=Actor("bob"), summary="A token.")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?actor=ADA", ["Sought.", "Changed orders."]),
        ("?kind=token.", ["A token."]),
        ("?stream=orders&actor=ada", ["Sought.", "Changed orders."]),
        ("?group=billing", ["Sought."]),
        ("?actor=bob&since=1+h+ago", ["A token."]),
        ("?until=1+h+ago", []),
        ("?actor=nobody", []),
    ],
)
def test_events_are_found_by_who_what_and_when(
    owner: Client, happened: None, query: str, found: list[str]
) -> None:
    assert shown(owner, query) == found


@pytest.mark.parametrize("kind", ["alert_rule.", "alert_rule.created", "demo.", "store.promoted", "events."])
def test_every_kind_can_be_asked_for(owner: Client, workspace: Workspace, happened: None, kind: str) -> None:
    whole = kind if not kind.endswith(".") else f"{kind}anything"
    event_record(workspace, kind=whole, actor=ADA, summary="This one.")
    page = owner.get(f"/events/?kind={kind}")
    assert [row.event.summary for row in page.context["rows"]] == ["This one."]
    assert page.context["form"].errors == {}
    assert f'<option value="{kind}" selected>' in page.content.decode()


def test_what_is_no_kind_is_told_and_is_no_option(owner: Client, happened: None) -> None:
    form = owner.get("/events/?kind=Stream+*").context["form"]
    assert list(form.errors) == ["kind"]
    assert "Stream *" not in dict(form.fields["kind"].choices)


def test_every_kind_that_is_recorded_has_an_entry() -> None:
    recorded = {
        begin
        for package in ("streams", "okmq", "dashboard", "spark")
        for path in (settings.BASE_DIR / package).rglob("*.py")
        for begin in re.findall(r'kind=f?"([a-z_]+\.)', path.read_text())
    }
    assert {"stream.", "alert_rule.", "demo.", "store.", "events."} <= recorded
    assert recorded <= set(dict(KINDS))


def test_a_stream_and_a_group_have_their_own(owner: Client, happened: None) -> None:
    assert shown(owner, page="/streams/orders/activity/")[:2] == ["Sought.", "Changed orders."]


def links(client: Client, page: str) -> list[str]:
    """Where the streams and groups of a page's events lead."""
    cells = re.findall(r'<a class="small" href="([^"]+)"', client.get(page).content.decode())
    return [unescape(each) for each in cells]


def test_the_stream_of_an_event_leads_to_its_activity(
    owner: Client, make_stream: MakeStream, workspace: Workspace
) -> None:
    stream = make_stream("orders")
    group_create(stream, name="billing", settings={}, actor=ADA)
    found = links(owner, "/events/?actor=ada")
    assert found == ["/streams/orders/activity/", "/streams/orders/groups/billing/activity/"]
    assert [owner.get(each).status_code for each in found] == [200, 200]


def test_what_was_deleted_leads_to_its_events(
    owner: Client, make_stream: MakeStream, workspace: Workspace
) -> None:
    stream = make_stream("orders")
    group, _ = group_create(stream, name="billing", settings={}, actor=ADA)
    group_delete(group, actor=Actor("bob"))
    found = links(owner, "/events/?actor=bob")
    assert found == ["/streams/orders/activity/", "/events/?stream=orders&group=billing"]
    stream_delete(stream, actor=Actor("eve"))
    (of_stream,) = links(owner, "/events/?actor=eve")
    assert of_stream == "/events/?stream=orders"
    assert len(shown(owner, page=of_stream)) == 4


def test_a_stream_elsewhere_of_the_same_name_is_not_this_one(
    owner: Client, elsewhere: Workspace, make_stream: MakeStream, workspace: Workspace
) -> None:
    make_stream("orders", within=elsewhere)
    event_record(workspace, kind="stream.deleted", actor=ADA, stream="orders", summary="Gone.")
    assert links(owner, "/events/?actor=ada") == ["/events/?stream=orders"]


def test_a_time_that_is_none_says_so(owner: Client, happened: None) -> None:
    answer = owner.get("/events/?since=yesterday")
    assert answer.status_code == 200
    assert b"Enter a time such as" in answer.content


@pytest.mark.parametrize("wrong", ["since=xx", "kind=!!", "until=xx", "before=xx", "after=-1"])
def test_under_a_filter_that_is_wrong_nothing_is_listed_that_was_not_asked_for(
    owner: Client, workspace: Workspace, happened: None, wrong: str
) -> None:
    stream = Stream.objects.get(workspace=workspace, name="orders")
    group_create(stream, name="billing", settings={}, actor=ADA)
    pages = ("/events/?actor=bob&", "/streams/orders/activity/?", "/streams/orders/groups/billing/activity/?")
    for page in pages:
        answer = owner.get(f"{page}{wrong}")
        assert answer.status_code == 200
        assert answer.context["rows"] == []
        text = answer.content.decode()
        assert "A filter is not valid" in text
        assert "No events yet" not in text
        assert "/api/v1/events" not in text
        newer = owner.get(f"{page}{wrong}&seen=0", headers={"HX-Request": "true"})
        assert newer.context["newer"] == 0


def test_pages_go_back_and_forth(owner: Client, workspace: Workspace) -> None:
    for number in range(PAGE_SIZE + 5):
        event_record(workspace, kind="test.counted", actor=ADA, summary=f"{number}.")
    first = owner.get("/events/?actor=ada").context
    assert (first["newer"], len(first["rows"])) == (None, PAGE_SIZE)
    second = owner.get(f"/events/?actor=ada&before={first['older']}").context
    assert [row.event.summary for row in second["rows"]] == ["4.", "3.", "2.", "1.", "0."]
    assert second["older"] is None
    back = owner.get(f"/events/?actor=ada&after={second['newer']}").context
    assert [row.event.id for row in back["rows"]] == [row.event.id for row in first["rows"]]
    assert back["newer"] is None


def test_before_and_after_stand_side_by_side_what_differs_first() -> None:
    row = EventRow(Event(before={"a": 1, "b": 2, "old": True}, after={"a": 1, "b": 3, "new": None}))
    assert row.changes == [
        Change("b", "2", "3"),
        Change("old", "true", None),
        Change("new", None, "null"),
        Change("a", "1", "1"),
    ]


def test_a_number_that_is_not_known_is_said_so() -> None:
    event = Event(after={"messages": None, "bytes": 0, "outcome": "unknown", "ttl": None})
    assert EventRow(event).changes == [
        Change("messages", None, "unknown"),
        Change("bytes", None, "0"),
        Change("outcome", None, '"unknown"'),
        Change("ttl", None, "null"),
    ]


def test_a_change_is_shown_with_its_values(owner: Client, make_stream: MakeStream) -> None:
    stream_change(make_stream("orders", ttl=60), changes={"ttl": 90}, actor=ADA)
    page = owner.get("/streams/orders/activity/").content.decode()
    assert "<del><bdi>60</bdi></del>" in page
    assert "<ins><bdi>90</bdi></ins>" in page


def test_a_stranger_sees_none_of_ours(stranger: Client, happened: None) -> None:
    assert shown(stranger) == []
    assert b"Sought." not in content(stranger.get("/events/export/"))
    assert stranger.get("/streams/orders/activity/").status_code == 404


def test_all_that_match_come_as_a_file(owner: Client, workspace: Workspace, happened: None) -> None:
    event_record(workspace, kind="user.added", actor=ADA, after={"a": 1}, summary='=HYPERLINK("x")')
    lines = content(owner.get("/events/export/?actor=ada")).splitlines()
    assert [json.loads(line)["summary"] for line in lines] == [
        "Changed orders.",
        "Sought.",
        '=HYPERLINK("x")',
    ]
    written = content(owner.get("/events/export/?actor=ada&format=csv"))
    rows = list(csv.DictReader(io.StringIO(written.decode())))
    assert rows[-1]["summary"] == '\'=HYPERLINK("x")'
    assert json.loads(rows[-1]["after"]) == {"a": 1}


def test_hostile_words_stay_words(owner: Client, workspace: Workspace) -> None:
    event_record(
        workspace,
        kind="x.y",
        actor=Actor("<script>1</script>"),
        after={"<b>": "<i>"},
        summary="<img src=x>",
    )
    page = owner.get("/events/").content
    assert b"<script>1" not in page
    assert b"<img src=x>" not in page
    assert b"<i>" not in page


def test_the_page_says_how_far_the_chain_holds(owner: Client, happened: None) -> None:
    assert b"chain not verified yet" in owner.get("/events/").content
    chain_check_step()
    assert f"verified to #{Event.objects.latest('id').id}" in owner.get("/events/").content.decode()


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("/streams/orders/activity/", ""),
        ("/streams/orders/groups/billing/activity/", ""),
        ("/events/", "?stream=orders&actor=ada"),
    ],
)
def test_an_open_page_says_how_many_events_came_since(
    owner: Client, workspace: Workspace, make_stream: MakeStream, page: str, query: str
) -> None:
    group_create(make_stream("orders"), name="billing", settings={}, actor=ADA)
    shown_then = owner.get(page + query).content.decode()
    (address,) = re.findall(rf'hx-get="({page}[^"]+)"', shown_then)

    def told() -> str:
        part = owner.get(unescape(address), headers={"hx-request": "true"}).content.decode()
        return " ".join(strip_tags(part).split())

    assert told() == ""
    event_record(
        workspace, kind="group.sought", actor=ADA, stream="other", group="billing", summary="Sought."
    )
    assert told() == ""
    event_record(
        workspace, kind="group.sought", actor=ADA, stream="orders", group="billing", summary="Sought."
    )
    assert told() == "1 newer event. Show"
    for _ in range(NEWER_COUNTED):
        event_record(
            workspace, kind="group.lost", actor=ADA, stream="orders", group="billing", summary="Lost."
        )
    assert told() == "More than 100 newer events. Show"
    assert f'hx-get="{page}' not in owner.get(f"{page}?before=1").content.decode()


def test_open_pages_hear_that_something_was_recorded(
    owner: Client, stranger: Client, workspace: Workspace, make_stream: MakeStream
) -> None:
    make_stream("orders")

    def mark(client: Client) -> int:
        (told,) = client.get("/live/now/?topic=overview").json()["events"]
        return int(told["event"]["events_mark"])

    before, elsewhere_before = mark(owner), mark(stranger)
    for page in ("/", "/events/", "/streams/orders/activity/"):
        held = f'data-field="events_mark" data-format="part" data-value="{before}"'
        assert held in owner.get(page).content.decode()
    event = event_record(workspace, kind="stream.changed", actor=ADA, stream="orders", summary="Changed.")
    assert mark(owner) == event.id
    assert mark(stranger) == elsewhere_before
    of_none = event_record(None, kind="process.restarted", actor=ADA, summary="Restarted.")
    assert newest_events(above=event.id) == {workspace.pk: of_none.id}
    assert mark(owner) == of_none.id
