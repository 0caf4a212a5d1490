"""What the store lost goes on above all offsets that it gave, and the database is ahead of these."""

import pytest

from streams import selectors, store
from streams.log import keys, lineage
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Event, RollupPosition, Stream
from streams.services.offsets_reserved import BLOCK, Reservations
from streams.services.streams_told import streams_publish

pytestmark = pytest.mark.django_db(transaction=True)


def reserved(stream: Stream) -> int:
    return Stream.objects.values_list("offsets_reserved", flat=True).get(pk=stream.pk)


def publish(stream: Stream, id_: str) -> int:
    (stored,) = store.log().run(append(stream.stream_id, [NewMessage(id=id_, body=b"1")]))
    return stored.offset


def lose(stream: Stream) -> None:
    store.log().client.execute_command("UNLINK", *keys.all_of(stream.stream_id))


def test_the_database_is_ahead_with_few_writes(stream: Stream, django_assert_num_queries: object) -> None:
    assert reserved(stream) == BLOCK
    reservations = Reservations()
    reservations.keep_ahead({stream.stream_id: 10})
    with django_assert_num_queries(0):  # type: ignore[operator]
        reservations.keep_ahead({stream.stream_id: BLOCK // 2})
    with django_assert_num_queries(1):  # type: ignore[operator]
        reservations.keep_ahead({stream.stream_id: BLOCK // 2 + 1})
    assert reserved(stream) == BLOCK // 2 + 1 + BLOCK
    # Another worker's knowledge is not taken back.
    Reservations().keep_ahead({stream.stream_id: 5})
    assert reserved(stream) == BLOCK // 2 + 1 + BLOCK


def test_a_stream_that_is_all_gone_begins_above_whatever_tells_of_an_offset(stream: Stream) -> None:
    assert publish(stream, "1") == 1
    before = store.log().run(lineage.look()).epoch
    lose(stream)
    assert [each.pk for each in selectors.streams_lost()] == [stream.pk]
    RollupPosition.objects.create(stream_id=stream.stream_id, offset=BLOCK + 7)
    streams_publish([Stream.objects.get(pk=stream.pk)], archived=lambda: {stream.stream_id: BLOCK + 70})
    assert publish(stream, "1") == BLOCK + 71
    assert store.log().run(lineage.look()).epoch == before + 1
    told = Event.objects.get(kind="store.told_again")
    assert told.after == {"epoch": before + 1, "streams": 1}
    assert selectors.streams_lost() == []


def test_nothing_is_skipped_where_the_messages_are_there(stream: Stream) -> None:
    publish(stream, "1")
    before = store.log().run(lineage.look()).epoch
    store.log().client.execute_command("UNLINK", keys.meta(stream.stream_id))
    assert selectors.streams_lost() == []
    streams_publish([Stream.objects.get(pk=stream.pk)])
    assert publish(stream, "2") == 2
    assert publish(stream, "1") == 1
    assert store.log().run(lineage.look()).epoch == before
    assert not Event.objects.filter(kind="store.told_again").exists()


def test_an_empty_stream_that_is_told_again_begins_at_one(stream: Stream) -> None:
    streams_publish([Stream.objects.get(pk=stream.pk)])
    assert publish(stream, "1") == 1
