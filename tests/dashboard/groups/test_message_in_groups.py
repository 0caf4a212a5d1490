"""The page of a message says how each group stands to it."""

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client
from django.utils.html import strip_tags

from dashboard.groups import message_in_groups
from streams import store
from streams.access import SYSTEM
from streams.log import dead_letters, groups
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream
from streams.services.groups import group_create
from streams.services.streams import stream_change
from tests.dashboard.conftest import MakeStream

PAGE = "/streams/orders/messages/2/"


@pytest.fixture
def stream(make_stream: MakeStream) -> Stream:
    made = make_stream("orders")
    store.log().run(append(made.stream_id, [NewMessage(id=f"m{n}", body=b"1", key="eu") for n in range(3)]))
    return made


def table(client: Client) -> dict[str, str]:
    """Group → its state and what that means."""
    page = client.get(PAGE).content.decode()
    panel = page.split('id="groups"')[1].split("</section>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", panel.split("<tbody>")[1], re.DOTALL) if "<tbody>" in panel else []
    cells = [[" ".join(unescape(strip_tags(each)).split()) for each in row.split("</td>")] for row in rows]
    return {name: f"{state}: {meaning}" for name, state, meaning, _end in cells}


def fetch(stream: Stream, group: str, **asked: object) -> None:
    store.log().run(groups.fetch(stream.stream_id, group, **asked))  # type: ignore[arg-type]


def out(stream: Stream) -> None:
    fetch(stream, "g", limit=2, consumer="<b>a</b>")


def unnamed_and_given_back(stream: Stream) -> None:
    fetch(stream, "g", limit=2)
    store.log().run(groups.nack(stream.stream_id, "g", "offsets", [2]))


def dead(stream: Stream) -> None:
    fetch(stream, "g", limit=2)
    store.log().run(groups.term(stream.stream_id, "g", "offsets", [2], reason="no <i>such</i>"))


def replayed(stream: Stream) -> None:
    dead(stream)
    store.log().run(dead_letters.replay(stream.stream_id, "g", [2]))


def acknowledged(stream: Stream) -> None:
    fetch(stream, "g", limit=2)
    store.log().run(groups.ack(stream.stream_id, "g", "offsets", [1, 2]))


def one_before(stream: Stream) -> None:
    fetch(stream, "g", limit=1)


def nothing(stream: Stream) -> None:
    pass


@pytest.mark.parametrize(
    ("do", "settings", "says"),
    [
        (nothing, {}, r"not delivered yet: 1 message before it"),
        (one_before, {}, r"not delivered yet: It is the next one\."),
        (out, {}, r"in flight: Delivery 1 of 5, to <b>a</b>; delivered again in \d+ s unless settled\. .*"),
        (out, {"max_deliver": -1}, r"in flight: Delivery 1, to <b>a</b>; delivered again in .*"),
        (
            unnamed_and_given_back,
            {},
            r"in flight: Delivery 1 of 5, to an unnamed consumer; delivered again at the next fetch\. .*",
        ),
        (one_before, {"ordered_by_key": True}, r"not delivered yet: It is the next one\."),
        (out, {"ordered_by_key": True}, r"held back: An earlier message of its key is in flight\."),
        (
            out,
            {"max_deliver": 1},
            r"in flight: Delivery 1 of 1, to <b>a</b>; dead letter in \d+ s unless settled\. .*",
        ),
        (replayed, {}, r"in flight: Given back or replayed; delivered again at the next fetch\."),
        (dead, {}, r"dead letter: 1 delivery; no <i>such</i> .*"),
        (acknowledged, {}, r"passed: Acknowledged, or the group began after it or was sought past it\."),
        (nothing, {"filter_keys": ["us"]}, r"filtered out: Its key matches none of the group's patterns\."),
    ],
)
def test_it_says_what_the_state_means(
    viewer: Client, stream: Stream, do: Callable[[Stream], None], settings: dict[str, object], says: str
) -> None:
    group_create(stream, name="g", settings=settings, actor=SYSTEM)
    do(stream)
    assert re.fullmatch(says, table(viewer)["g"]), table(viewer)["g"]


def test_what_a_consumer_gave_stands_apart_and_turns_nothing_around(viewer: Client, stream: Stream) -> None:
    for name in ("g", "dead"):
        group_create(stream, name=name, settings={}, actor=SYSTEM)
        fetch(stream, name, limit=2, consumer="w\u202e")
    store.log().run(groups.term(stream.stream_id, "dead", "offsets", [2], reason="no\u202e\x07"))
    page = viewer.get(PAGE).content.decode()
    assert "<bdi>w\\u202e</bdi>" in page
    assert "<bdi>no\\u202e\\u0007</bdi>" in page
    assert not {"\u202e", "\x07"} & set(page)


@pytest.mark.parametrize("path", ["messages/2/", "groups/g/", "groups/g/pending/", "groups/g/dead-letters/"])
def test_nor_does_it_on_the_pages_of_the_group(viewer: Client, stream: Stream, path: str) -> None:
    turned = "exe\u202egnp.\u2066"
    stream_change(stream, changes={"description": turned}, actor=SYSTEM)
    group_create(stream, name="g", settings={"description": turned}, actor=SYSTEM)
    store.log().run(append(stream.stream_id, [NewMessage(id=turned, body=b"1", key=turned)]))
    fetch(stream, "g", limit=9, consumer=turned)
    store.log().run(groups.term(stream.stream_id, "g", "offsets", [4], reason=turned))
    page = viewer.get(f"/streams/orders/{path}").content.decode()
    assert "\\u202egnp." in page
    assert not {"\u202e", "\u2066"} & set(re.sub(r'(title|href|value|id|name)="[^"]*"', "", page))


def test_a_stream_without_groups_says_so(viewer: Client, stream: Stream) -> None:
    assert table(viewer) == {}
    assert "The stream has no consumer groups." in viewer.get(PAGE).content.decode()


def test_of_many_the_first_are_shown_and_all_are_counted(
    viewer: Client, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_in_groups, "MOST_SHOWN", 2)
    for n in range(3):
        group_create(stream, name=f"g{n}", settings={}, actor=SYSTEM)
    fetch(stream, "g2", limit=2)
    assert list(table(viewer)) == ["g2", "g0"]
    assert "2 of 3" in viewer.get(PAGE).content.decode()


def test_an_opened_row_leads_there(viewer: Client, stream: Stream) -> None:
    part = viewer.get(PAGE, headers={"HX-Request": "true"}).content.decode()
    assert f'href="{PAGE}#groups"' in part
    assert 'id="groups"' not in part
