import pytest

from streams.log import commit, entries, errors, keys, meta, read, trim
from streams.log.append import append
from streams.log.client import Log, Op
from streams.log.entries import Entry, NewMessage
from tests.streams.log.messages import browse, fill, message, offsets


def before(log: Log, stream: str, offset: int, limit: int) -> list[int]:
    def op() -> Op[list[Entry]]:
        at = yield from read.position(stream)
        return (yield from read.backward(stream, at, offset, limit))

    return [entries.position(entry)[0] for entry in log.run(op())]


def after_committed(log: Log, stream: str, limit: int = 10) -> list[int]:
    return [entries.position(entry)[0] for entry in log.run(read.after_committed(stream, limit))]


def test_reading_goes_on_after_the_committed_offset(log: Log, stream: str) -> None:
    fill(log, stream, 5)
    assert log.run(commit.commit(stream, 3)) == 0
    assert after_committed(log, stream) == [4, 5]


def test_reading_changes_nothing(log: Log, stream: str) -> None:
    fill(log, stream, 3)
    assert after_committed(log, stream, 2) == after_committed(log, stream, 2) == [1, 2]


def test_a_commit_may_go_back_and_not_beyond_the_end(log: Log, stream: str) -> None:
    fill(log, stream, 3)
    log.run(commit.commit(stream, 3))
    assert log.run(commit.commit(stream, 0)) == 3
    with pytest.raises(errors.OffsetOutOfRange) as refusal:
        log.run(commit.commit(stream, 4))
    assert refusal.value.last_offset == 3


def test_gaps_are_skipped(log: Log, stream: str) -> None:
    fill(log, stream, 5)
    log.run(trim.delete(stream, [1, 3]))
    assert after_committed(log, stream) == [2, 4, 5]


def test_before_gives_the_newest_below_in_ascending_order(log: Log, stream: str) -> None:
    fill(log, stream, 9)
    assert before(log, stream, 5, 3) == [2, 3, 4]
    assert before(log, stream, 99, 2) == [8, 9]
    assert before(log, stream, 1, 2) == before(log, stream, 0, 2) == []


def test_an_answer_stops_at_16_mib_and_goes_on_where_it_stopped(log: Log, stream: str) -> None:
    body = b'"' + b"x" * 999_998 + b'"'
    for n in range(1, 21):
        log.run(append(stream, [message(n, body=body)]))
    page = browse(log, stream)
    assert [each.offset for each in page] == list(range(1, 17))
    assert offsets(log, stream, 17) == [17, 18, 19, 20]


def test_small_messages_before_large_ones_keep_to_the_same_bound(log: Log, stream: str) -> None:
    fill(log, stream, 2000)
    for n in range(2001, 2021):
        log.run(append(stream, [message(n, body=b'"' + b"x" * 999_998 + b'"')]))
    page = browse(log, stream, 1, 10_000)
    assert len(page) == 2016


def test_a_time_names_the_first_message_at_or_after_it(log: Log, stream: str) -> None:
    for n in range(1, 8):
        fill(log, stream, 1, first=n)
    held = browse(log, stream)
    for each in held:
        earliest = min(other.offset for other in held if other.timestamp_ms >= each.timestamp_ms)
        assert log.run(read.offset_at(stream, each.timestamp_ms)) == earliest
    assert log.run(read.offset_at(stream, held[-1].timestamp_ms + 1)) == 8


def test_times_do_not_run_backwards(log: Log, stream: str) -> None:
    fill(log, stream, 50)
    times = [each.timestamp_ms for each in browse(log, stream)]
    assert times == sorted(times)


def test_one_message_by_offset(log: Log, stream: str) -> None:
    fill(log, stream, 3)
    log.run(trim.delete(stream, [2]))
    assert entries.position(log.run(read.message(stream, 3)))[0] == 3
    for missing in (0, 2, 4):
        with pytest.raises(errors.MessageNotFound):
            log.run(read.message(stream, missing))


def test_an_id_is_found_without_a_search(log: Log, stream: str) -> None:
    fill(log, stream, 3)
    assert log.run(read.offset_of_id(stream, "id-2")) == 2
    assert log.run(read.offset_of_id(stream, "nobody")) is None


def test_an_entry_as_json_is_what_the_contract_says(log: Log, stream: str) -> None:
    log.run(append(stream, [message(1, body=b'{"a":1.0}', key="k.1")]))
    (entry,) = log.run(read.after_committed(stream, 1))
    when = entries.parse(entry).timestamp
    assert entries.to_json(entry) == (
        b'{"id":"id-1","offset":1,"timestamp":"' + when.encode() + b'","body":{"a":1.0},"key":"k.1"}'
    )


@pytest.mark.parametrize(
    "sent",
    [
        NewMessage(id="a", body=b"1"),
        NewMessage(id="\x01" * 50, body=b"1"),
        NewMessage(id='"' * 50, body=b"[" * 50, key="\\" * 255, headers=b'{"h":"\\u0001"}', ttl_s=9),
        NewMessage(id="é" * 50, body=b"null", key="😀"),
        NewMessage(id="a", body=b"1", headers=b"{}"),
    ],
)
def test_no_message_takes_more_room_in_an_answer_than_is_counted(
    log: Log, stream: str, sent: NewMessage
) -> None:
    far = meta.Counters(last=2**53 - 2, floor=2**53 - 1)
    log.client.hset(keys.meta(stream), meta.COUNTERS, meta.pack(far))
    log.run(append(stream, [sent]))
    (entry,) = log.run(read.after_committed(stream, 1))
    assert len(entries.to_json(entry)) + len(",") <= entries.answer_bytes(entry)
