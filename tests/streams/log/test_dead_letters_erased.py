"""Dead letters erased: of a message or of a key, with those that were replayed; nothing of others."""

from collections.abc import Callable

import pytest

from streams.log import dead_letters, entries, errors, fsck, fsck_groups, groups, keys, standing, trim
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage
from streams.log.groups import Settings
from streams.log.standing import GroupState

OF = ("one", "other", None)

Letters = Callable[..., None]


@pytest.fixture
def letters(log: Log, stream: str) -> Letters:
    """``letters(9)``: so many messages with the keys in turn, all of them dead letters of the group g."""

    def make(count: int, body: bytes = b"1", **settings: object) -> None:
        log.run(groups.group_publish(stream, "g", Settings(**settings), delivered=0))  # type: ignore[arg-type]
        messages = [NewMessage(id=f"m{n}", body=body, key=OF[(n - 1) % 3]) for n in range(1, count + 1)]
        for first in range(0, count, 1000):
            log.run(append(stream, messages[first : first + 1000]))
        while out := fetched(log, stream):
            log.run(groups.term(stream, "g", "offsets", out, reason="bad"))

    return make


def fetched(log: Log, stream: str) -> list[int]:
    found = log.run(groups.fetch(stream, "g", limit=1000))
    return [entries.position(each.entry)[0] for each in found.deliveries]


def dead(log: Log, stream: str) -> list[int]:
    return [letter.offset for letter in log.run(dead_letters.page(stream, "g", limit=10_000))]


def state(log: Log, stream: str) -> GroupState:
    return log.run(standing.inspect(stream, "g"))


def is_right(log: Log, stream: str) -> bool:
    looked = log.run(fsck.look(stream))
    assert looked is not None
    return not log.run(fsck_groups.look(stream, last=looked.right.counters.last))


def erase(log: Log, stream: str, **what: object) -> int:
    return log.run(dead_letters.erase(stream, "g", **what))  # type: ignore[arg-type]


def test_of_a_key_all_go_and_of_others_none(log: Log, stream: str, letters: Letters) -> None:
    letters(3030)
    assert erase(log, stream, key="one") == 1010
    assert dead(log, stream) == [n for n in range(1, 3031) if n % 3 != 1]
    assert erase(log, stream, key="one") == 0
    assert erase(log, stream, key="nobody") == 0


def test_large_ones_are_looked_at_a_few_at_a_time(log: Log, stream: str, letters: Letters) -> None:
    letters(30, body=b'"' + b"x" * 900_000 + b'"')
    log.run(dead_letters.replay(stream, "g", list(range(1, 16))))
    assert erase(log, stream, key="other") == 10
    assert dead(log, stream) == [n for n in range(16, 31) if n % 3 != 2]


def test_of_a_message_its_letter_goes(log: Log, stream: str, letters: Letters) -> None:
    letters(4)
    assert erase(log, stream, offset=2) == 1
    assert erase(log, stream, offset=2) == 0
    assert dead(log, stream) == [1, 3, 4]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("is_out", [False, True], ids=["waits", "out"])
@pytest.mark.parametrize("what", [{"offset": 4}, {"key": "one"}], ids=["offset", "key"])
def test_what_was_replayed_and_the_stream_has_lost_comes_no_more(
    log: Log, stream: str, letters: Letters, what: dict[str, object], is_out: bool, ordered: bool
) -> None:
    letters(6, ordered_by_key=ordered, max_ack_pending=1000)
    log.run(trim.delete(stream, [4]))
    log.run(dead_letters.replay(stream, "g", [4, 5]))
    if is_out:
        assert fetched(log, stream) == [4, 5]
    erased = erase(log, stream, **what)
    assert erased == (1 if "offset" in what else 2)
    assert (state(log, stream).ack_pending, is_right(log, stream)) == (1, True)
    assert fetched(log, stream) == ([] if is_out else [5])
    log.run(groups.seek(stream, "g", next_offset=7))
    assert 4 not in dead(log, stream)
    assert not log.client.hgetall(keys.replayed(stream, "g"))


def test_what_was_replayed_and_stands_in_the_stream_still_comes_from_there(
    log: Log, stream: str, letters: Letters
) -> None:
    letters(3)
    log.run(dead_letters.replay(stream, "g", [1]))
    assert erase(log, stream, key="one") == 1
    assert fetched(log, stream) == [1]
    log.run(groups.seek(stream, "g", next_offset=4))
    assert dead(log, stream) == [2, 3]


def test_of_a_group_that_is_not_there_it_is_said(log: Log, stream: str, letters: Letters) -> None:
    letters(1)
    with pytest.raises(errors.GroupNotFound):
        log.run(dead_letters.erase(stream, "nobody", offset=1))
    with pytest.raises(errors.StreamNotFound):
        log.run(dead_letters.erase(keys.stream_id(), "g", key="one"))


@pytest.mark.parametrize("what", [{"offset": 4}, {"key": "one"}, {"offset": 9}, {"key": "nobody"}], ids=str)
def test_how_many_would_go_is_told_before(
    log: Log, stream: str, letters: Letters, what: dict[str, object]
) -> None:
    letters(3030)
    log.run(dead_letters.replay(stream, "g", [4, 5]))
    kept, all_read = log.run(dead_letters.kept(stream, "g", **what, until_s=float("inf")))  # type: ignore[arg-type]
    assert all_read
    assert erase(log, stream, **what) == kept
    assert log.run(dead_letters.kept(stream, "g", **what, until_s=float("inf"))) == (0, True)  # type: ignore[arg-type]


def test_of_a_key_none_above_an_offset_is_told_or_goes(log: Log, stream: str, letters: Letters) -> None:
    letters(12)
    log.run(dead_letters.replay(stream, "g", [4, 10]))
    what: dict[str, object] = {"key": "one", "up_to": 7}
    assert log.run(dead_letters.kept(stream, "g", **what, until_s=float("inf"))) == (3, True)  # type: ignore[arg-type]
    assert erase(log, stream, **what) == 3
    assert dead(log, stream) == [2, 3, 5, 6, 8, 9, 11, 12]
    assert erase(log, stream, key="one") == 1


def test_of_very_many_it_is_told_that_there_may_be_more(log: Log, stream: str, letters: Letters) -> None:
    letters(3030)
    assert log.run(dead_letters.kept(stream, "g", key="one", until_s=0)) == (334, False)
    assert len(dead(log, stream)) == 3030, "looking changes nothing"
