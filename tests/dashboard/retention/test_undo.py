"""Undo in the console: said on the stream's page, one click, and refused in a sentence."""

from django.test import Client

from streams import store
from streams.access import Actor
from streams.log import stats
from streams.models import Stream
from streams.selectors import removals_of
from streams.services import messages
from streams.services.streams import stream_change
from tests.dashboard.conftest import MakeStream

ANN = Actor("ann")


def purged(make_stream: MakeStream) -> Stream:
    stream = make_stream("orders", bodies=[b"12"] * 10)
    messages.stream_purge(stream, actor=ANN)
    return stream


def count(stream: Stream) -> int:
    return store.log().run(stats.inspect(stream.stream_id)).messages


def test_what_was_purged_is_said_with_who_and_comes_back_by_a_click(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = purged(make_stream)
    page = owner.get("/streams/orders/").content.decode()
    assert "10 messages" in page
    assert "removed by ann can be restored until" in page
    answer = owner.post("/streams/orders/removals/1/undo/", follow=True)
    assert "10 messages were restored" in answer.content.decode()
    assert "can be restored until" not in answer.content.decode()
    assert count(stream) == 10


def test_a_part_is_offered_where_a_limit_has_taken_the_rest(owner: Client, make_stream: MakeStream) -> None:
    stream = purged(make_stream)
    stream_change(stream, changes={"max_messages": 4}, actor=ANN)
    page = owner.post("/streams/orders/removals/1/undo/", follow=True).content.decode()
    assert "4 of 10 messages can still be restored" in page
    assert "Restore what is left" in page
    owner.post("/streams/orders/removals/1/undo/", {"partial": "1"})
    assert count(stream) == 4


def test_a_viewer_sees_it_and_has_no_right_to_it(viewer: Client, make_stream: MakeStream) -> None:
    stream = purged(make_stream)
    assert "This needs the right to manage." in viewer.get("/streams/orders/").content.decode()
    assert viewer.post("/streams/orders/removals/1/undo/").status_code == 403
    assert viewer.post("/streams/orders/removals/1/end/").status_code == 403
    assert count(stream) == 0


def test_it_can_be_made_final(owner: Client, make_stream: MakeStream) -> None:
    purged(make_stream)
    page = owner.post("/streams/orders/removals/1/end/", follow=True).content.decode()
    assert "can no longer be restored" in page
    again = owner.post("/streams/orders/removals/1/undo/", follow=True).content.decode()
    assert "There is no such removal" in again
    gone = owner.get("/streams/orders/removals/1/end/", follow=True).content.decode()
    assert "There is no such removal" in gone


def test_each_removal_says_what_it_was_and_those_before_are_folded(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[b"12"] * 10)
    for offset in (3, 4, 5, 8):
        messages.message_delete(stream, offset=offset, actor=ANN)
    messages.stream_purge(stream, below=3, actor=ANN)
    page = owner.get("/streams/orders/").content.decode()
    newest = ["Below 3", "Message 8", "Message 5"]
    places = [page.index(f"<bdi>{what}</bdi>") for what in newest]
    assert places == sorted(places)
    assert "2 earlier removals can also be restored" in page[places[-1] :]
    folded = page[page.index("2 earlier removals") :]
    assert folded.index("<bdi>Message 4</bdi>") < folded.index("<bdi>Message 3</bdi>")


def test_what_was_removed_before_is_named_before_it_goes_for_good_too(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[b"12"] * 10, labels={"env": "production"})
    for offset in (3, 4, 5):
        messages.message_delete(stream, offset=offset, actor=ANN)
    page = owner.get("/streams/orders/removals/2/end/").content.decode()
    assert "These 2 removals can be restored now, but not afterwards" in page
    assert "<bdi>Message 3</bdi>" in page
    assert "<bdi>Message 4</bdi>" in page
    assert "<bdi>Message 5</bdi>" not in page
    assert owner.post("/streams/orders/removals/2/end/", {"confirm": "order"}).status_code == 422
    assert len(removals_of(stream)) == 3
    owner.post("/streams/orders/removals/2/end/", {"confirm": "orders"})
    assert [each.number for each in removals_of(stream)] == [3]
