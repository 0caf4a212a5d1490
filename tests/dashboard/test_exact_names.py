"""Names that programs gave, taken by the console exactly as they are: a space at either end tells two apart."""

from urllib.parse import quote

import pytest
from django.test import Client

from streams import selectors, store
from streams.access import SYSTEM
from streams.log import groups
from streams.models import Event, Group, SavedQuery, Stream, Workspace
from streams.services.events import event_record
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import confirmed
from tests.dashboard.groups.test_groups import BODIES, LETTERS, PAGE, letters, make_group

DESK = f"{PAGE}pending/"
HAS = {"w": [1, 2, 3], "w ": [4, 5], " ": [6]}


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    """Three consumers have messages in flight; their names differ by a space."""
    group = make_group(make_stream("orders", bodies=BODIES))
    for consumer, offsets in HAS.items():
        store.log().run(
            groups.fetch(group.stream.stream_id, group.name, limit=len(offsets), consumer=consumer)
        )
    return group


@pytest.mark.parametrize("consumer", HAS)
def test_the_desk_shows_the_messages_of_the_consumer_that_was_named(
    owner: Client, billing: Group, consumer: str
) -> None:
    assert f'pending/?consumer={quote(consumer)}"' in owner.get(PAGE).content.decode()
    page = owner.get(DESK, {"consumer": consumer})
    assert [row.offset for row, _ in page.context["rows"]] == HAS[consumer]


@pytest.mark.parametrize("consumer", HAS)
def test_the_desk_settles_the_messages_of_the_consumer_that_was_named(
    owner: Client, billing: Group, consumer: str
) -> None:
    confirmed(owner, f"{DESK}settle/", {"what": "ack", "scope": "all", "consumer": consumer})
    left = {row.offset for row in selectors.in_flight(billing)[0]}
    assert left == {1, 2, 3, 4, 5, 6} - {*HAS[consumer]}


@pytest.mark.parametrize(("reason", "found"), [("late ", [1]), (" ", [1, 2]), ("late", [1, 2, 3])])
def test_a_reason_is_looked_for_and_acted_on_with_its_spaces(
    owner: Client, make_stream: MakeStream, reason: str, found: list[int]
) -> None:
    billing = make_group(make_stream("orders", bodies=BODIES))
    for why in ("late order", "too late", "late"):
        leases = [
            each.lease
            for each in store.log()
            .run(groups.fetch(billing.stream.stream_id, "billing", limit=1, consumer="c-1"))
            .deliveries
        ]
        store.log().run(groups.term(billing.stream.stream_id, "billing", "leases", leases, reason=why))
    page = owner.get(LETTERS, {"reason": reason})
    assert [row.letter.offset for row in page.context["letters"]] == found
    confirmed(owner, f"{LETTERS}bulk/", {"do": "delete", "scope": "all", "reason": reason})
    assert letters(billing) == [offset for offset in (1, 2, 3) if offset not in found]


def test_labels_that_are_saved_as_they_were_stay_as_they_were(owner: Client, make_stream: MakeStream) -> None:
    held = {" team": " a ", "team ": "b", "z": "last "}
    page = make_stream("orders", labels=held).name
    form = owner.get(f"/streams/{page}/settings/").context["form"]
    filled = {name: value for name, value in form.initial.items() if value}
    owner.post(f"/streams/{page}/settings/", {**filled, "description": "new"})
    stream = Stream.objects.get(name="orders")
    assert (stream.labels, stream.description) == (held, "new")


def test_the_label_that_is_named_is_the_one_that_is_removed(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", labels={"team": "a", "team ": "b"})
    address = "/streams/_bulk/?do=label&stream=orders"
    assert owner.post(address, {"label": "team ", "value": ""}).status_code == 302
    assert Stream.objects.get(name="orders").labels == {"team": "a"}
    assert owner.post(address, {"label": " team", "value": " c"}).status_code == 302
    assert Stream.objects.get(name="orders").labels == {"team": "a", " team": " c"}


@pytest.mark.parametrize(
    ("label", "value"),
    [("team ", "b"), ("team", " b"), ("team", "b"), ("a=b", "c"), ("a", "b:c"), ("n" * 63, "v" * 255)],
)
def test_the_link_of_a_label_leads_to_the_streams_with_that_label(
    owner: Client, make_stream: MakeStream, label: str, value: str
) -> None:
    for name, labels in (("plain", {"team": "b"}), ("first", {"a": "b:c"}), ("named", {label: value})):
        make_stream(name, labels=labels)
    has = [stream.name for stream in Stream.objects.order_by("name") if stream.labels.get(label) == value]
    link = f"?label={quote(label, safe='')}:{quote(value, safe='')}"
    assert f'href="/streams/{link}"' in owner.get("/streams/").content.decode()
    rows = owner.get(f"/streams/{link}").context["page"].rows
    assert [row.name for row in rows] == has


def test_a_query_is_saved_beside_one_whose_name_differs_by_a_space(owner: Client) -> None:
    for name in ("daily", "daily "):
        owner.post("/sql/", {"sql": f"SELECT '{name}'", "limit": 1, "name": name, "save": "1"})
    assert {saved.name: saved.sql for saved in SavedQuery.objects.all()} == {
        "daily": "SELECT 'daily'",
        "daily ": "SELECT 'daily '",
    }


def test_events_are_narrowed_to_the_actor_as_it_is_called(owner: Client, workspace: Workspace) -> None:
    for name in ("w", "w "):
        actor = type(SYSTEM)(name=name)
        event_record(workspace, kind="stream.changed", actor=actor, summary="It was changed.")
    found = owner.get("/events/", {"actor": "w "}).context["rows"]
    assert [row.event.actor for row in found] == ["w "]
    assert Event.objects.filter(actor="w").exists()
