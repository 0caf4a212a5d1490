"""Looking into a stream and publishing by hand."""

import pytest
from django.test import Client

from streams import selectors, store
from streams.access import SYSTEM
from streams.log import stats, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.services.messages import message_delete
from tests.dashboard.conftest import MakeStream

BODIES = [str(number).encode() for number in range(1, 121)]


def offsets(answer: object) -> list[int]:
    return [row.message.offset for row in answer.context["window"].rows]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", list(range(120, 70, -1))),
        ("?before=71", list(range(70, 20, -1))),
        ("?after=70", list(range(120, 70, -1))),
        ("?start=oldest", list(range(1, 51))),
        ("?start=oldest&after=50", list(range(51, 101))),
        ("?start=oldest&before=51", list(range(1, 51))),
        ("?start=offset&at=118", [118, 119, 120]),
        ("?start=offset&at=1,18", [118, 119, 120]),
        ("?start=time&at=1 h ago", list(range(1, 51))),
        ("?start=time&at=2999-01-01", []),
        ("?start=offset&at=99999999999999999999", []),
        ("?at=118", [118, 119, 120]),
        ("?start=newest&at=1,18", [118, 119, 120]),
        ("?start=oldest&at= 118 ", [118, 119, 120]),
        ("?start=newest&at=118&before=118", list(range(68, 118))),
        ("?start=newest&at=15 min ago", list(range(1, 51))),
        ("?start=oldest&at=2999-01-01 07:05", []),
        ("?at=32503680000000", []),
        ("?at=m119", [119, 120]),
        ("?at=  ", list(range(120, 70, -1))),
    ],
)
def test_one_can_start_anywhere(
    owner: Client, make_stream: MakeStream, query: str, expected: list[int]
) -> None:
    make_stream("orders", bodies=BODIES)
    assert offsets(owner.get(f"/streams/orders/{query}")) == expected


@pytest.mark.parametrize(
    "query",
    [
        "?start=offset&at=x",
        "?start=time&at=soon",
        "?start=time&at=",
        "?start=sideways",
        "?at=15 mins ago",
        "?start=oldest&at=two words",
    ],
)
def test_a_start_that_cannot_be_read_is_said_in_the_form(
    owner: Client, make_stream: MakeStream, query: str
) -> None:
    make_stream("orders", bodies=BODIES)
    assert owner.get(f"/streams/orders/{query}").status_code == 422


@pytest.mark.parametrize(
    ("at", "start"),
    [
        ("118", "offset"),
        ("1795244753123", "time"),
        ("15 min ago", "time"),
        ("2026-11-21", "time"),
        ("m118", "id"),
        ("550e8400-e29b-41d4-a716-446655440000", "id"),
    ],
)
@pytest.mark.parametrize("left", ["", "newest", "oldest"])
def test_what_stands_in_the_box_of_the_start_is_where_it_starts_and_the_form_says_as_what(
    viewer: Client, make_stream: MakeStream, at: str, start: str, left: str
) -> None:
    make_stream("orders", bodies=BODIES)
    page = viewer.get("/streams/orders/", {"start": left, "at": at})
    assert page.context["start"] == start
    assert f'<option value="{start}" selected>' in page.content.decode()


def test_looking_moves_nothing(viewer: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", bodies=BODIES)
    before = store.log().run(stats.inspect(stream.stream_id))
    for page in ("", "?start=oldest", "messages/5/", "messages/5/raw/"):
        assert viewer.get(f"/streams/orders/{page}").status_code == 200
    assert store.log().run(stats.inspect(stream.stream_id)) == before


def test_an_empty_stream_shows_how_to_publish(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert (
        "curl http://testserver/api/v1/streams/orders/messages"
        in owner.get("/streams/orders/").content.decode()
    )


def test_a_message_opens_under_its_row_with_every_digit(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b'{"id":9007199254740993}'])
    part = owner.get("/streams/orders/messages/1/", headers={"HX-Request": "true"}).content
    assert b'<span class="json-number">9007199254740993</span>' in part
    assert b"<html" not in part


def test_a_message_has_a_page_of_its_own(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"])
    assert b"Show in the list" in owner.get("/streams/orders/messages/1/").content


@pytest.mark.parametrize("offset", ["0", "2", "99999999999999999999999999"])
def test_a_message_that_is_not_there_is_404(owner: Client, make_stream: MakeStream, offset: str) -> None:
    make_stream("orders", bodies=[b"1"])
    assert owner.get(f"/streams/orders/messages/{offset}/").status_code == 404


def test_the_raw_body_is_plain_text_byte_for_byte(owner: Client, make_stream: MakeStream) -> None:
    body = b'"<script>alert(1)</script>"'
    make_stream("orders", bodies=[body])
    answer = owner.get("/streams/orders/messages/1/raw/")
    assert answer.content == body
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_body_with_markup_is_text_on_every_page(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b'"<img src=x onerror=alert(1)>"'])
    for page in ("/streams/orders/", "/streams/orders/messages/1/"):
        assert b"<img src=x" not in owner.get(page).content


def test_a_message_of_another_workspace_is_404(stranger: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"])
    for page in ("", "messages/1/", "messages/1/raw/"):
        assert stranger.get(f"/streams/orders/{page}").status_code == 404


def test_publishing_tells_the_offset_and_a_second_time_the_duplicate(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    form = {"id": "a", "key": "orders.eu", "body": '{"n": 9007199254740993, "f": 1.0}'}
    answer = owner.post("/streams/orders/publish/", form)
    assert (answer.status_code, answer["Location"]) == (302, "/streams/orders/publish/?stored=1")
    page = owner.get(answer["Location"])
    assert 'Stored at offset 1. <a href="/streams/orders/messages/1/">Show it</a>' in page.content.decode()
    kept = page.context["form"].initial
    assert (kept["key"], kept["body"]) == (form["key"], form["body"])
    assert kept["id"] != "a"
    assert "id is already at offset 1." in owner.post("/streams/orders/publish/", form).content.decode()
    (message,) = selectors.messages_from(stream, offset=0, limit=10)
    assert (message.id, message.key, message.body) == ("a", "orders.eu", b'{"n": 9007199254740993, "f": 1.0}')


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", ""),
        ("id", "x" * 51),
        ("key", "a..b"),
        ("key", "a.*"),
        ("body", ""),
        ("body", "{"),
        ("body", "NaN"),
        ("body", "[" * 200 + "]" * 200),
        ("body", '{"a":1} {"b":2}'),
    ],
)
def test_what_cannot_be_stored_is_said_at_its_field(
    owner: Client, make_stream: MakeStream, field: str, value: str
) -> None:
    stream = make_stream("orders")
    answer = owner.post("/streams/orders/publish/", {"id": "a", "key": "", "body": "1", field: value})
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert selectors.messages_from(stream, offset=0, limit=10) == []


def test_a_key_outside_the_streams_patterns_is_refused_at_its_field(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders", keys=["orders.>"])
    answer = owner.post("/streams/orders/publish/", {"id": "a", "key": "other.x", "body": "1"})
    assert "orders.>" in answer.context["form"].errors["key"][0]


def test_a_viewer_may_not_publish(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert b"disabled" in viewer.get("/streams/orders/publish/").content
    assert viewer.post("/streams/orders/publish/", {"id": "a", "key": "", "body": "1"}).status_code == 403


def test_a_message_that_went_is_told_with_what_the_stream_holds(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=BODIES[:9])
    message_delete(stream, offset=5, actor=SYSTEM)
    store.log().run(trim.purge(stream.stream_id, below=4))
    for offset, why in ((2, "removed by retention or a purge"), (5, "deleted, or has expired"), (12, "yet")):
        alone = owner.get(f"/streams/orders/messages/{offset}/")
        assert alone.status_code == 404
        note = owner.get(f"/streams/orders/messages/{offset}/", headers={"HX-Request": "true"})
        assert note.status_code == 200
        for told in (alone.content.decode(), note.content.decode()):
            assert f"Message {offset} " in told
            assert why in told
            assert "The stream holds offsets 4 to 9." in told
        assert 'href="/streams/orders/"' in alone.content.decode()
        assert "case-sensitive" not in alone.content.decode()
    deleting = owner.get("/streams/orders/messages/2/delete/")
    assert deleting.status_code == 404
    assert "case-sensitive" not in deleting.content.decode()


def test_a_filter_that_is_wrong_is_refused_at_its_field(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b'{"total": 7}'])
    answer = owner.get("/streams/orders/", {"match": ".total >> 5"})
    assert answer.status_code == 422
    field = answer.content.decode().split('<div class="at-match">')[1].split("</div>")[0]
    assert "is no comparison" in field
    assert "is-invalid" in field
    assert 'aria-describedby="id_match_error"' in field
    assert 'id="id_match_error"' in field


def test_a_message_tells_its_unix_time_to_copy(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", bodies=BODIES[:1])
    (message,) = selectors.messages_from(stream, offset=1, limit=1)
    page = owner.get("/streams/orders/messages/1/").content.decode()
    assert f"<span data-copy-source>{message.timestamp_ms}</span>" in page
    assert "Copy the Unix time" in page


def test_people_see_when_a_message_expires_by_the_wall_clock(make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    store.log().run(append(stream.stream_id, [NewMessage(id="a", body=b"1", ttl_s=60)]))
    ends_ms = selectors.message_at(stream, 1).expires_ms
    assert ends_ms is not None
    store.log().clock.jumps = ((0, 0), (1_000, 3_600_000))  # as another look finds it noted
    assert selectors.message_at(stream, 1).expires_ms == ends_ms + 3_600_000
