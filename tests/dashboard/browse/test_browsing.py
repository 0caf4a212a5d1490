"""Finding messages: by id, by key, by what is in them, by when they came."""

import time
from functools import partial

import pytest
from django.test import Client

from dashboard import formats
from dashboard.browse import windows
from dashboard.timelines import MOST_BARS, edges
from streams import selectors, store
from streams.log import search, stats, trim
from streams.log.append import append
from streams.log.client import Command
from streams.log.entries import NewMessage
from streams.models import Stream
from tests.dashboard.conftest import MakeStream, sees_all
from tests.waiting import until


@pytest.fixture
def orders(make_stream: MakeStream) -> Stream:
    """120 messages; every tenth is refused and has the key orders.us."""
    stream = make_stream("orders")
    messages = [
        NewMessage(
            id=f"order-{n}",
            key="orders.us" if n % 10 == 0 else "orders.eu",
            body=b'{"n": %d, "status": "%s"}' % (n, b"refused" if n % 10 == 0 else b"paid"),
        )
        for n in range(1, 121)
    ]
    store.log().run(append(stream.stream_id, messages))
    return stream


def offsets(answer: object) -> list[int]:
    return [row.message.offset for row in answer.context["window"].rows]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"match": "refused"}, list(range(120, 0, -10))),
        ({"match": ".status = refused", "start": "oldest"}, list(range(10, 121, 10))),
        ({"match": ".n = 7"}, [7]),
        ({"key": "orders.us", "start": "offset", "at": "95"}, [100, 110, 120]),
        ({"key": "*.us", "match": ".n > 100"}, [120, 110]),
        ({"key": "payments.>"}, []),
        ({"start": "id", "at": "order-118"}, [118, 119, 120]),
        ({"start": "id", "at": "order-119", "match": "refused"}, [120]),
        ({"start": "id", "at": "order-90", "match": "refused"}, [90, 100, 110, 120]),
        ({"start": "time", "at": "1 h ago", "until": "30 min ago"}, []),
    ],
)
def test_one_finds_what_one_looks_for(
    viewer: Client, orders: Stream, query: dict[str, str], expected: list[int]
) -> None:
    assert offsets(viewer.get("/streams/orders/", query)) == expected


def test_pages_of_a_range_end_where_it_ends(
    viewer: Client, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "PAGE_SIZE", 4)
    stream = make_stream("paid")

    def is_past(at_ms: int) -> bool:
        return time.time() * 1000 > at_ms + 1

    for first in (1, 6, 11, 16):
        batch = [NewMessage(id=str(first + n), body=b"1") for n in range(5)]
        store.log().run(append(stream.stream_id, batch))
        published_ms = selectors.message_at(stream, first).timestamp_ms
        until(partial(is_past, published_ms))
    begin, end = (formats.iso(selectors.message_at(stream, offset).timestamp_ms) for offset in (6, 16))

    def walked(query: dict[str, str], way: str) -> list[int]:
        found = []
        while True:
            answer = viewer.get("/streams/paid/", query)
            assert offsets(answer), "a link led to an empty page"
            found += offsets(answer)
            on = getattr(answer.context["window"], way)
            if on is None:
                return found
            query = {name: text for name, text in query.items() if name not in ("before", "after")}
            query |= {"before" if way == "older" else "after": str(on)}

    inside = {"start": "time", "at": begin, "until": end}
    assert walked(inside, "newer") == list(range(6, 16))
    assert sorted(walked({**inside, "before": "99"}, "older")) == list(range(6, 16))
    assert walked({"start": "newest", "until": end, "before": "12"}, "newer") == [
        11,
        10,
        9,
        8,
        15,
        14,
        13,
        12,
    ]
    assert sorted(walked({"start": "offset", "at": "18"}, "older")) == list(range(1, 21)), "no end, no range"


def test_an_id_that_is_no_longer_remembered_is_searched_for(viewer: Client, orders: Stream) -> None:
    store.log().run(stats.inspect(orders.stream_id))
    for bucket in (0, 1):
        store.log().client.delete(f"okmq:{{{orders.stream_id}}}:ids:{bucket}")
    answer = viewer.get("/streams/orders/", {"start": "id", "at": "order-7"})
    assert offsets(answer) == [7]
    assert "no longer remembered" in answer.content.decode()


def test_a_search_from_an_id_goes_on_upwards_from_it(
    viewer: Client, orders: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "PAGE_SIZE", 3)
    query, found = {"start": "id", "at": "order-60", "match": "refused"}, []
    while True:
        answer = viewer.get("/streams/orders/", query)
        search = answer.context["window"].search
        found.append(offsets(answer))
        if search.done:
            break
        query |= {name: str(value) for name, value in search.resume.items()}
    assert [each for each in found if each] == [[60, 70, 80], [90, 100, 110], [120]]
    assert (search.scanned, search.matched) == (61, 7)


@pytest.mark.parametrize(
    "query",
    [
        {"key": "a..b"},
        {"key": "*x"},
        {"match": ".n ="},
        {"start": "id"},
        {"until": "soon"},
        {"start": "time", "at": "yesterday"},
        {"before": "x"},
        {"scanned": "-1"},
    ],
)
def test_what_cannot_be_looked_for_is_said_in_the_form(
    viewer: Client, orders: Stream, query: dict[str, str]
) -> None:
    answer = viewer.get("/streams/orders/", query)
    assert answer.status_code == 422
    assert answer.context["form"].errors
    assert viewer.get("/streams/orders/", query, headers={"HX-Request": "true"}).status_code == 422


def test_a_search_is_bounded_says_what_it_scanned_and_goes_on(
    viewer: Client, orders: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "PAGE_SIZE", 5)
    first = viewer.get("/streams/orders/", {"match": "refused"})
    assert offsets(first) == [120, 110, 100, 90, 80]
    assert "scanned 41 of 120, 5 match" in first.content.decode()
    looked = first.context["window"].search
    assert (looked.looked_bytes, looked.span_ms) == of_offsets(orders, 80, 120)
    assert (
        f" · {formats.span(*looked.span_ms)} · {formats.size(looked.looked_bytes)}" in first.content.decode()
    )
    query = {"match": "refused", **first.context["window"].search.resume}
    second = viewer.get("/streams/orders/", query)
    assert offsets(second) == [70, 60, 50, 40, 30]
    third = viewer.get(
        "/streams/orders/",
        {"match": "refused", **second.context["window"].search.resume},
        headers={"HX-Request": "true"},
    )
    text = third.content.decode()
    assert "scanned 120 of 120, 12 match" in text
    whole = third.context["window"].search
    assert (whole.looked_bytes, whole.span_ms) == of_offsets(orders, 1, 120)
    assert "complete" in text
    assert "<html" not in text


def of_offsets(stream: Stream, first: int, last: int) -> tuple[int, tuple[int, int]]:
    """The size of the bodies of these messages, and when the first and the last of them came."""
    held = [selectors.message_at(stream, offset) for offset in range(first, last + 1)]
    return sum(len(each.body) for each in held), (held[0].timestamp_ms, held[-1].timestamp_ms)


def test_a_search_from_the_oldest_on_says_the_same_of_what_it_looked_at(
    viewer: Client, orders: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "PAGE_SIZE", 5)
    query = {"match": "refused", "start": "oldest"}
    for last in (50, 100, 120):
        looked = viewer.get("/streams/orders/", query).context["window"].search
        assert (looked.looked_bytes, looked.span_ms) == of_offsets(orders, 1, last)
        query |= looked.resume


def test_a_search_of_nothing_looked_at_nothing(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"])
    page = viewer.get("/streams/orders/", {"match": "refused", "start": "offset", "at": "9"})
    assert page.context["window"].search.span_ms is None
    assert "scanned 0 of 0, 0 match, 0.0 s · complete" in page.content.decode()


def test_one_slice_of_a_search_looks_at_a_bounded_number(orders: Stream) -> None:
    assert search.MOST_SCANNED <= 100_000
    assert search.LONGEST_S < 0.5
    found = selectors.messages_found(orders, limit=50, wanted=lambda entry: False)
    assert (found.scanned, found.rest) == (120, None)


def test_a_slice_of_a_search_ends_with_its_time(orders: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PAGE", 50)
    found = selectors.messages_found(orders, limit=50, wanted=lambda entry: False, seconds=0)
    assert (found.scanned, found.rest) == (50, (51, 121))
    assert windows.FIRST_SLICE_S <= windows.SLICE_S < search.LONGEST_S


def test_nothing_matches_and_nothing_there_are_said_apart(
    viewer: Client, orders: Stream, make_stream: MakeStream
) -> None:
    assert "Nothing matches" in viewer.get("/streams/orders/", {"match": "nowhere"}).content.decode()
    make_stream("empty")
    assert "No messages yet" in viewer.get("/streams/empty/", {"match": "nowhere"}).content.decode()


def test_the_timeline_counts_every_message_once_and_leaves_out_the_deleted(
    viewer: Client, orders: Stream
) -> None:
    store.log().run(trim.delete(orders.stream_id, [5, 6]))
    timeline = viewer.get("/streams/orders/").context["timeline"]
    assert timeline.total == 118
    assert 1 <= len(timeline.bars) <= MOST_BARS


def test_a_bar_leads_to_its_messages(viewer: Client, orders: Stream) -> None:
    timeline = viewer.get("/streams/orders/").context["timeline"]
    bar = max(timeline.bars, key=lambda bar: bar.count)
    answer = viewer.get("/streams/orders/", bar.query)
    assert offsets(answer) == list(range(bar.offset, bar.offset + min(50, bar.count)))
    assert answer.context["timeline"].zoomed
    assert answer.context["timeline"].total == bar.count


def test_an_empty_stream_has_no_timeline(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("empty")
    assert viewer.get("/streams/empty/").context["timeline"] is None


@pytest.mark.parametrize("span_ms", [0, 1, 71, 72, 999, 61_000, 86_400_000, 400 * 86_400_000])
@pytest.mark.parametrize("first_ms", [0, 1_795_244_753_123])
def test_bars_hold_the_whole_span_and_are_few(first_ms: int, span_ms: int) -> None:
    found = edges(first_ms, first_ms + span_ms)
    assert found[0] <= first_ms
    assert found[-1] > first_ms + span_ms
    assert 2 <= len(found) <= MOST_BARS + 1


def test_the_timeline_asks_the_store_twice_however_long_the_stream(
    orders: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = store.log().run(stats.inspect(orders.stream_id))
    sent = []
    send = store.log()._send

    def counted(command: Command) -> object:
        sent.append(command)
        return send(command)

    monkeypatch.setattr(store.log(), "_send", counted)
    times = edges(state.first_ms or 0, (state.last_ms or 0) + 3_600_000)
    selectors.messages_between(orders, selectors.offsets_at(orders, times))
    assert len(sent) == 2


def test_a_tail_gives_what_is_new_newest_first(viewer: Client, orders: Stream) -> None:
    part = viewer.get("/streams/orders/tail/?after=117", headers={"HX-Request": "true"})
    assert [row.message.offset for row in part.context["rows"]] == [120, 119, 118]


def test_a_tail_that_falls_behind_says_how_many_it_left_out(viewer: Client, orders: Stream) -> None:
    part = viewer.get("/streams/orders/tail/?after=10", headers={"HX-Request": "true"})
    assert [row.message.offset for row in part.context["rows"]] == list(range(120, 20, -1))
    assert "10 more messages arrived and are not shown" in part.content.decode()


def test_a_tail_that_is_filtered_does_not_say_that_what_it_left_out_matches(
    viewer: Client, orders: Stream
) -> None:
    part = viewer.get("/streams/orders/tail/?after=10&key=orders.>", headers={"HX-Request": "true"})
    assert len(part.context["rows"]) == 100
    assert "10 more messages arrived and were not scanned" in part.content.decode()


def test_a_tail_is_filtered_like_the_page(viewer: Client, orders: Stream) -> None:
    part = viewer.get("/streams/orders/tail/?after=0&key=orders.us", headers={"HX-Request": "true"})
    assert [row.message.offset for row in part.context["rows"]] == list(range(120, 0, -10))
    assert viewer.get("/streams/orders/tail/?match=.x+%3D").status_code == 422


def test_the_tail_of_another_workspace_is_404(stranger: Client, orders: Stream) -> None:
    assert stranger.get("/streams/orders/tail/").status_code == 404


def test_a_message_is_published_again_from_a_form_that_holds_it(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    body = b'{"n": 9007199254740993, "f": 1.0}'
    message = NewMessage(id="a", key="orders.eu", headers=b'{"trace":"4bf9"}', body=body)
    store.log().run(append(stream.stream_id, [message]))
    page = owner.get("/streams/orders/publish/?like=1")
    initial = page.context["form"].initial
    assert '<a href="/streams/orders/messages/1/">message 1</a> of stream orders.' in page.content.decode()
    assert owner.post("/streams/orders/publish/", initial).status_code == 302
    again = selectors.message_at(stream, 2)
    assert (again.key, again.headers, again.body) == (message.key, message.headers, body)
    assert again.id != "a"
    assert owner.get("/streams/orders/publish/?like=9").status_code == 404


@pytest.mark.parametrize("headers", ["{", "[]", '{"a": 1}', "1", "[" * 2000])
def test_headers_that_are_not_text_are_refused_at_their_field(
    owner: Client, make_stream: MakeStream, headers: str
) -> None:
    make_stream("orders")
    form = {"id": "a", "key": "", "headers": headers, "body": "1"}
    assert "headers" in owner.post("/streams/orders/publish/", form).context["form"].errors


def test_deleting_a_message_is_asked_first_and_recorded(owner: Client, orders: Stream) -> None:
    page = "/streams/orders/messages/7/delete/"
    assert "Delete message 7" in owner.get(page).content.decode()
    assert selectors.message_at(orders, 7)
    assert owner.post(page).status_code == 302
    assert owner.get("/streams/orders/messages/7/").status_code == 404
    wanted = selectors.EventsWanted(stream="orders")
    (event,) = selectors.events_found(sees_all(orders.workspace), wanted, limit=1)
    assert event.kind == "message.deleted"


def test_deleting_from_a_production_stream_needs_its_name(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", bodies=[b"1"], labels={"env": "production"})
    page = "/streams/orders/messages/1/delete/"
    assert owner.post(page, {"confirm": "order"}).status_code == 422
    assert selectors.message_at(stream, 1)
    assert owner.post(page, {"confirm": "orders"}).status_code == 302


def test_a_viewer_may_not_delete_a_message(viewer: Client, orders: Stream) -> None:
    assert viewer.post("/streams/orders/messages/7/delete/").status_code == 403
    assert b"This needs the right to manage." in viewer.get("/streams/orders/messages/7/").content


def test_a_body_is_downloaded_byte_for_byte(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b'{"n":  1.0}'])
    answer = viewer.get("/streams/orders/messages/1/raw/?download")
    assert answer.content == b'{"n":  1.0}'
    assert answer["Content-Disposition"] == 'attachment; filename="orders-1.json"'


def test_what_the_address_says_is_open_is_open(viewer: Client, orders: Stream) -> None:
    page = viewer.get("/streams/orders/?open=119&open=119&open=soon&open=0").content.decode()
    assert page.count('data-row aria-expanded="true"') == 1
    assert page.count('<div class="detail">') == 1
    assert "order-119" in page


def test_as_many_are_open_as_the_address_says(viewer: Client, orders: Stream) -> None:
    query = "&".join(f"open={offset}" for offset in range(90, 115))
    page = viewer.get(f"/streams/orders/?{query}").content.decode()
    assert page.count('data-row aria-expanded="true"') == 25


def test_what_is_open_stays_in_sight_when_newer_ones_have_pushed_it_off_the_page(
    viewer: Client, orders: Stream
) -> None:
    answer = viewer.get("/streams/orders/?open=3")
    assert [row.message.offset for row in answer.context["apart"]] == [3]
    assert "open, but not in the list below" in answer.content.decode()
    older = 'href="?before='
    assert older in answer.content.decode(), "a link to another page closes it"


def test_what_was_open_and_is_gone_is_said(viewer: Client, orders: Stream) -> None:
    store.log().run(trim.delete(orders.stream_id, [3]))
    page = viewer.get("/streams/orders/?open=3").content.decode()
    assert "Message 3, which was open here, is no longer in the stream." in page


def test_a_single_message_is_said_in_the_singular(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"])
    page = owner.get("/streams/orders/").content.decode()
    assert "1 message, at offset 1<" in page
    assert "1 message; at most 1 in " in page
    preview = owner.get("/streams/_bulk/?do=delete&stream=orders").content.decode()
    assert "This removes 1 message (1 B), 0 consumer groups with" in preview


def test_a_young_stream_s_timeline_is_a_minute_of_seconds(viewer: Client, orders: Stream) -> None:
    timeline = viewer.get("/streams/orders/").context["timeline"]
    assert timeline.step_ms == 1000
    assert timeline.end_ms - timeline.start_ms >= 60_000
    assert timeline.total == 120
    assert sum(bar.count for bar in timeline.bars[-2:]) >= 60, "what is there stands at the end"
