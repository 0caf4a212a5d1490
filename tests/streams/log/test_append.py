import threading
from collections.abc import Callable

import pytest

from streams.log import errors, removals, stats, trim, undo
from streams.log.append import BATCH_BYTES, Appended, Expectation, append, append_what_fits, batches
from streams.log.client import Log, Op
from streams.log.entries import NewMessage
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import browse, fill, message, offsets
from tests.waiting import until


def test_offsets_begin_at_1_and_have_no_gap(log: Log, stream: str) -> None:
    fill(log, stream, 1500)
    assert offsets(log, stream) == list(range(1, 1501))


def test_an_id_known_already_is_answered_with_its_first_offset(log: Log, stream: str) -> None:
    fill(log, stream, 3)
    again = log.run(append(stream, [message(2, body=b'"other"'), message(4)]))
    assert again == [Appended(2, True), Appended(4, False)]
    assert [held.body for held in browse(log, stream)] == [b"1"] * 4


def test_an_id_twice_in_one_batch_is_stored_once(log: Log, stream: str) -> None:
    assert log.run(append(stream, [message(1), message(1), message(2)])) == [
        Appended(1, False),
        Appended(1, True),
        Appended(2, False),
    ]


def test_a_purge_does_not_clear_the_ids(log: Log, stream: str) -> None:
    from streams.log import trim

    fill(log, stream, 2)
    log.run(trim.purge(stream))
    assert log.run(append(stream, [message(1)])) == [Appended(1, True)]


def test_a_body_too_large_refuses_the_whole_batch(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_message_bytes=4)
    with pytest.raises(errors.MessageTooLarge) as refusal:
        log.run(append(stream, [message(1), message(2, body=b"12345")]))
    assert (refusal.value.index, refusal.value.size_bytes, refusal.value.limit_bytes) == (1, 5, 4)
    assert offsets(log, stream) == []


def test_bodies_keys_and_headers_come_back_byte_for_byte(log: Log, stream: str) -> None:
    body = '{"é": 1.0, "big": 123456789012345678901234567890}'.encode()
    log.run(append(stream, [NewMessage(id="ü", body=body, key="a.b", headers=b'{"h":"1"}', ttl_s=60)]))
    (held,) = browse(log, stream)
    assert (held.id, held.body, held.key, held.headers) == ("ü", body, "a.b", b'{"h":"1"}')
    assert held.expires_ms == held.timestamp_ms + 60_000


@pytest.mark.parametrize(
    ("expect", "kind"),
    [
        (Expectation(last_offset=1), "last_offset"),
        (Expectation(last_id="id-1"), "last_id"),
        (Expectation(last_key_offset={"a.b": 1}), "last_key_offset"),
        (Expectation(last_key_offset={"never": 1}), "last_key_offset"),
    ],
)
def test_a_failed_expectation_stores_nothing(log: Log, stream: str, expect: Expectation, kind: str) -> None:
    log.run(append(stream, [message(1), message(2, key="a.b")]))
    with pytest.raises(errors.WrongExpectation) as refusal:
        log.run(append(stream, [message(3)], expect=expect))
    assert refusal.value.kind == kind
    assert offsets(log, stream) == [1, 2]


def _delete(stream: str) -> Op[object]:
    return (yield from trim.delete(stream, [1]))


def _delete_for_a_while(stream: str) -> Op[object]:
    return (yield from removals.delete(stream, [1], keep_ms=60_000, facts={}))


def _purge(stream: str) -> Op[object]:
    return (yield from trim.purge(stream, below=2))


def _purge_for_a_while(stream: str) -> Op[object]:
    return (yield from removals.purge(stream, below=2, keep_ms=60_000, facts={}))


def _publish_more(stream: str) -> Op[object]:
    return (yield from append(stream, [message(3), message(4)]))


@pytest.mark.parametrize("archive", [False, True])
@pytest.mark.parametrize("act", [_delete, _delete_for_a_while, _purge, _purge_for_a_while, _publish_more])
def test_a_key_whose_newest_message_is_gone_has_none_whatever_took_it(
    log: Log, make_stream: MakeStream, act: Callable[[str], Op[object]], archive: bool
) -> None:
    stream = make_stream(max_messages=2, archive=archive)
    log.run(append(stream, [message(1, key="a"), message(2, key="b")]))
    log.run(act(stream))
    expect = Expectation(last_key_offset={"a": 9})
    with pytest.raises(errors.WrongExpectation) as refusal:
        log.run(append(stream, [message(5)], expect=expect))
    assert refusal.value.last_key_offset == {"a": 0}


@pytest.mark.parametrize("whose", ["message", "stream"])
def test_a_key_whose_newest_message_is_over_has_none(log: Log, make_stream: MakeStream, whose: str) -> None:
    stream = make_stream(ttl=1 if whose == "stream" else None)
    log.run(append(stream, [message(1, key="a", ttl_s=1 if whose == "message" else None)]))
    until(lambda: not offsets(log, stream), within_s=5)
    none_yet = Expectation(last_key_offset={"a": 0})
    assert log.run(append(stream, [message(2)], expect=none_yet)) == [Appended(2, False)]


def test_a_key_has_its_newest_message_back_after_an_undo(log: Log, stream: str) -> None:
    log.run(append(stream, [message(1, key="a")]))
    _, number = log.run(removals.delete(stream, [1], keep_ms=60_000, facts={}))
    log.run(undo.undo(stream, number or 0))
    held = Expectation(last_key_offset={"a": 1})
    assert log.run(append(stream, [message(2)], expect=held)) == [Appended(2, False)]


def test_expectations_that_hold_let_the_batch_in(log: Log, stream: str) -> None:
    none_yet = Expectation(last_offset=0, last_id="", last_key_offset={"a.b": 0})
    log.run(append(stream, [message(1, key="a.b")], expect=none_yet))
    now = Expectation(last_offset=1, last_id="id-1", last_key_offset={"a.b": 1})
    assert log.run(append(stream, [message(2)], expect=now)) == [Appended(2, False)]


def test_duplicates_are_settled_before_expectations(log: Log, stream: str) -> None:
    first = Expectation(last_offset=0)
    log.run(append(stream, [message(1)], expect=first))
    assert log.run(append(stream, [message(1)], expect=first)) == [Appended(1, True)]


@pytest.mark.parametrize(("room", "known"), [(0, 0), (1, 0), (37, 0), (37, 5), (100, 0), (200, 3)])
def test_a_full_stream_takes_the_first_so_many_where_what_fits_is_sent(
    log: Log, make_stream: MakeStream, room: int, known: int
) -> None:
    stream = make_stream(max_messages=room + known, discard="new")
    fill(log, stream, known)
    placed, full = log.run(append_what_fits(stream, [message(n) for n in range(1, 101)]))
    took = min(100, room + known)
    assert placed == [Appended(n, n <= known) for n in range(1, took + 1)]
    assert (full is None) == (took == 100)
    assert offsets(log, stream) == list(range(1, took + 1))


def test_discard_new_refuses_what_does_not_fit(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages=2, discard="new")
    fill(log, stream, 2)
    with pytest.raises(errors.StreamFull) as refusal:
        log.run(append(stream, [message(3)]))
    assert (refusal.value.limit, refusal.value.allowed) == ("max_messages", 2)
    assert offsets(log, stream) == [1, 2]


def test_max_messages_keeps_the_newest(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages=3)
    fill(log, stream, 10)
    assert offsets(log, stream) == [8, 9, 10]


def test_max_bytes_keeps_the_newest_that_fit(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_bytes=25)
    for n in range(1, 6):
        log.run(append(stream, [message(n, body=b"x" * 10)]))
    assert offsets(log, stream) == [4, 5]
    assert log.run(stats.inspect(stream)).bytes == 20


def test_a_sealed_stream_takes_nothing(log: Log, make_stream: MakeStream) -> None:
    with pytest.raises(errors.StreamSealed):
        log.run(append(make_stream(sealed=True), [message(1)]))


def test_a_stream_that_is_gone_is_named_so(log: Log) -> None:
    with pytest.raises(errors.StreamNotFound):
        log.run(append("aaaaaaaaaaaa", [message(1)]))


def test_writers_at_the_same_time_leave_no_gap_and_double_nothing(
    redis_url: str, log: Log, stream: str
) -> None:
    def write(writer: int) -> None:
        own = Log(redis_url)
        for n in range(40):
            own.run(append(stream, [NewMessage(id=f"{n}-{k}", body=b"%d" % writer) for k in range(5)]))
        own.close()

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    held = browse(log, stream)
    assert [each.offset for each in held] == list(range(1, 201))
    assert len({each.id for each in held}) == 200


def test_many_messages_are_published_in_batches_of_bounded_number_and_size() -> None:
    small = [message(n) for n in range(2_500)]
    assert [len(batch) for batch in batches(small)] == [1000, 1000, 500]
    assert [each for batch in batches(small, most=7) for each in batch] == small
    large = [message(n, body=b"1" * (BATCH_BYTES // 2)) for n in range(3)]
    larger = message(4, body=b"1" * (BATCH_BYTES + 1))
    assert [len(batch) for batch in batches([*large, larger, *small[:2]])] == [2, 1, 1, 2]
    assert list(batches([])) == []
