"""What the history brings comes to one group alone, with the offsets it had, each once."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise

import pytest

from streams.log import bringing, dead_letters, entries, groups, keys, standing
from streams.log import spent as retiring
from streams.log.append import append
from streams.log.bringing import Brought
from streams.log.client import Log
from streams.log.commands import one
from streams.log.errors import GroupMoved, GroupNotFound, LeaseLost
from streams.log.group_scripts import group_script
from streams.log.groups import Settings
from streams.log.standing import GroupState
from tests.streams.log.checked import whats
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import fill, message
from tests.waiting import until

MakeGroup = Callable[..., str]
REPLAY = 7
NEW = Brought(0, 0, 0)


@pytest.fixture
def stream(log: Log, make_stream: MakeStream, publish_settings: Publish) -> str:
    """A stream that holds the offsets 21 to 30; those before went by its limit."""
    made = make_stream()
    fill(log, made, 30)
    publish_settings(made, max_messages=10)
    return made


@pytest.fixture
def make_group(log: Log, stream: str) -> MakeGroup:
    """Makes a group that has had everything that the stream holds."""

    def make(name: str = "g", *, delivered: int = 30, **settings: object) -> str:
        wanted = Settings(**settings)  # type: ignore[arg-type]
        log.run(groups.group_publish(stream, name, wanted, delivered=delivered))
        return name

    return make


def letter(offset: int, *, key: str | None = None, size: int = 1) -> bytes:
    return bringing.of_history(
        offset=offset,
        timestamp_ms=1_000 + offset,
        id=f"id-{offset}",
        body="1" * size,
        key=key,
        headers='{"a":"b"}',
    )


def bring(
    log: Log,
    stream: str,
    offsets: Sequence[int],
    *,
    upto: int = 20,
    known: Brought = NEW,
    generation: int | None = None,
    replay: int = REPLAY,
    key: str | None = None,
) -> Brought:
    at = log.run(bringing.generation(stream, "g")) if generation is None else generation
    letters = [letter(offset, key=key) for offset in offsets]
    return log.run(
        bringing.bring_back(
            stream, "g", replay=replay, generation=at, known=known, letters=letters, upto=upto
        )
    )


def take(log: Log, stream: str, limit: int = 100, name: str = "g") -> list[int]:
    found = log.run(groups.fetch(stream, name, limit=limit))
    return [entries.position(each.entry)[0] for each in found.deliveries]


def done(log: Log, stream: str, *offsets: int) -> int:
    return log.run(groups.ack(stream, "g", "offsets", offsets))


def stands(log: Log, stream: str) -> GroupState:
    return log.run(standing.inspect(stream, "g"))


def kept(log: Log, stream: str) -> int:
    """How many bodies stand beside what the group has in flight."""
    return int(log.client.hlen(keys.replayed(stream, "g")))


def test_the_group_alone_gets_them_as_they_were(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    make_group("other")
    assert bring(log, stream, [3, 4, 12]) == Brought(20, 3, 0, 997)
    found = log.run(groups.fetch(stream, "g", limit=10)).deliveries
    first = entries.parse(found[0].entry)
    assert [entries.position(each.entry)[0] for each in found] == [3, 4, 12]
    assert [each.deliveries for each in found] == [1, 1, 1]
    assert (first.timestamp_ms, first.id, first.body, first.headers) == (1_003, "id-3", b"1", b'{"a":"b"}')
    assert take(log, stream, name="other") == []
    assert log.client.xlen(keys.log(stream)) == 30, "nothing is appended"
    assert whats(log, stream) == []


def test_they_are_answered_as_others_are(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(max_deliver=2)
    bring(log, stream, [3, 4])
    assert take(log, stream) == [3, 4]
    assert stands(log, stream).ack_floor == 2
    assert done(log, stream, 3) == 1
    for _ in range(2):
        log.run(groups.nack(stream, "g", "offsets", [4]))
        take(log, stream)
    log.run(retiring.retire_these([(stream, "g")]))
    (dead,) = log.run(dead_letters.page(stream, "g"))
    assert (dead.offset, dead.reason, dead.deliveries, dead.id) == (4, "max_deliver", 2, "id-4")
    state = stands(log, stream)
    assert (state.ack_pending, state.acked, state.ack_floor) == (0, 1, 30)
    assert kept(log, stream) == 0


def test_what_is_terminated_keeps_its_body_and_is_delivered_again(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    bring(log, stream, [3])
    take(log, stream)
    log.run(groups.term(stream, "g", "offsets", [3], reason="bad"))
    assert log.run(dead_letters.replay(stream, "g", [3])) == 1
    assert take(log, stream) == [3]
    log.run(groups.seek(stream, "g", next_offset=31))
    assert [each.offset for each in log.run(dead_letters.page(stream, "g"))] == [3], "it was a dead letter"


def test_a_batch_that_is_sent_again_gives_nothing_twice(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    first = bring(log, stream, [3, 4], upto=5)
    assert take(log, stream) == [3, 4]
    done(log, stream, 3, 4)
    assert bring(log, stream, [3, 4], upto=5)[:3] == first[:3]
    assert bring(log, stream, [3, 4, 6, 7], upto=9) == Brought(9, 4, 0, 998)
    assert take(log, stream) == [6, 7]


def test_how_far_it_is_follows_from_what_the_caller_knows_where_the_group_has_lost_it(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    known = bring(log, stream, [3, 4], upto=5)
    log.client.delete(keys.brought(stream, "g"))
    assert bring(log, stream, [3, 4, 6], upto=6, known=known)[:3] == (6, 3, 0)
    assert take(log, stream) == [3, 4, 6]
    log.run(bringing.forget(stream, "g", replay=REPLAY))
    assert not log.client.exists(keys.brought(stream, "g"))


def test_a_group_has_a_bounded_number_at_a_time(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(max_ack_pending=3)
    assert bring(log, stream, range(1, 9)) == Brought(3, 3, 0, 0)
    assert bring(log, stream, range(1, 9)) == Brought(3, 3, 0, 0)
    assert take(log, stream) == [1, 2, 3]
    assert bring(log, stream, range(1, 9))[:3] == (3, 3, 0), "also while it has them"
    done(log, stream, 1, 2)
    assert bring(log, stream, range(1, 9)) == Brought(5, 5, 0, 0)
    assert take(log, stream) == [4, 5]


def test_of_large_messages_fewer_wait_and_one_at_least(
    log: Log, make_stream: MakeStream, make_group: MakeGroup
) -> None:
    wide = make_stream(max_message_bytes=8_388_608)
    log.run(append(wide, [message(1, body=b'"' + b"1" * 8_000_000 + b'"')]))
    log.run(groups.group_publish(wide, "g", Settings(), delivered=1))
    assert bring(log, wide, [], upto=0).room == 8


def test_the_lowest_come_first_also_where_some_were_given_later(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    bring(log, stream, [2, 9, 10], upto=10)
    bring(log, stream, [11, 20])
    assert [take(log, stream, 2) for _ in range(3)] == [[2, 9], [10, 11], [20]]


def test_what_the_group_has_or_gets_by_itself_is_passed_over(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(delivered=20)
    assert take(log, stream, 5) == [21, 22, 23, 24, 25]
    assert bring(log, stream, [20, 21, 25, 26, 30], upto=30)[:3] == (30, 1, 4)
    assert take(log, stream) == [20, 26, 27, 28, 29, 30]
    assert bring(log, stream, [20, 22], upto=30, replay=8)[:3] == (30, 0, 2)
    done(log, stream, 20, 22)
    assert bring(log, stream, [20, 22], upto=30, replay=9)[:3] == (30, 2, 0), "what was settled comes again"
    assert take(log, stream) == [20, 22]


def test_the_filter_of_the_group_holds(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(filter_keys=("eu.>",))
    assert bring(log, stream, [1], upto=1)[:3] == (1, 0, 1)
    assert bring(log, stream, [2], upto=2, key="us.1")[:3] == (2, 0, 2)
    assert bring(log, stream, [3], upto=3, key="eu.1")[:3] == (3, 1, 2)
    assert take(log, stream) == [3]


def test_ordered_by_key_each_waits_for_its_turn(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream()
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True), delivered=0))
    log.run(append(stream, [message(n, key=key) for n, key in enumerate("kkk", start=1)]))
    log.run(groups.seek(stream, "g", next_offset=3))
    assert take(log, stream) == [3]
    assert bring(log, stream, [1, 2], upto=2, key="k")[:3] == (2, 2, 0)
    for before, after in pairwise([3, 1, 2]):
        assert take(log, stream) == []
        done(log, stream, before)
        assert take(log, stream) == [after]
    assert whats(log, stream) == []


def test_what_waited_for_its_key_and_went_is_brought(
    log: Log, make_stream: MakeStream, publish_settings: Publish
) -> None:
    stream = make_stream()
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True), delivered=0))
    log.run(append(stream, [message(n, key="k") for n in range(1, 5)]))
    assert take(log, stream) == [1]
    publish_settings(stream, max_messages=2)
    assert bring(log, stream, [2, 3], upto=3, key="k")[:3] == (3, 1, 1), "3 waits in the stream"
    done(log, stream, 1)
    got = [until(lambda: take(log, stream), within_s=5)]
    while done(log, stream, *got[-1]) and (found := take(log, stream)):
        got.append(found)
    assert sorted(offset for part in got for offset in part) == [2, 3, 4]
    assert stands(log, stream).lost == 0


def test_a_seek_takes_them_back_and_ends_what_brings_them(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    at = log.run(bringing.generation(stream, "g"))
    bring(log, stream, [3, 4])
    assert take(log, stream, 1) == [3]
    log.run(groups.seek(stream, "g", next_offset=29))
    with pytest.raises(GroupMoved):
        bring(log, stream, [5], generation=at)
    assert take(log, stream) == [29, 30]
    assert log.run(dead_letters.page(stream, "g")) == [], "the history has them still"
    assert (kept(log, stream), log.client.exists(keys.brought(stream, "g"))) == (0, 0)
    assert bring(log, stream, [3, 4], replay=8)[:3] == (20, 2, 0)
    assert take(log, stream) == [3, 4]
    assert whats(log, stream) == []


def test_a_seek_that_takes_several_steps_lets_no_more_come_between_them(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(max_ack_pending=1000)
    at = log.run(bringing.generation(stream, "g"))
    bring(log, stream, range(1, 1 + 250), upto=260)
    brought = kept(log, stream)
    assert brought > 200, "more than one step takes back"
    step = one(group_script("group_seek", stream, "g", [keys.wake(stream), 29]))
    assert log.run(step) == []
    left = kept(log, stream)
    assert 0 < left < brought
    with pytest.raises(GroupMoved):
        bring(log, stream, [251], generation=at, upto=260)
    assert kept(log, stream) == left
    log.run(groups.seek(stream, "g", next_offset=29))
    assert kept(log, stream) == 0
    assert take(log, stream) == [29, 30]
    assert whats(log, stream) == []


def test_a_group_that_is_deleted_gets_none_and_one_of_its_name_is_another(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    at = log.run(bringing.generation(stream, "g"))
    bring(log, stream, [3, 4])
    log.run(groups.group_remove(stream, "g"))
    with pytest.raises(GroupNotFound):
        bring(log, stream, [5], generation=at)
    with pytest.raises(GroupNotFound):
        log.run(bringing.generation(stream, "g"))
    make_group()
    with pytest.raises(GroupMoved):
        bring(log, stream, [5], generation=at)
    assert take(log, stream) == []


def test_a_group_that_is_paused_says_so_and_gets_them_once_it_goes_on(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    log.run(groups.pause(stream, "g", until_ms=None))
    assert bring(log, stream, [3]).is_paused
    assert take(log, stream) == []
    log.run(groups.resume(stream, "g"))
    assert take(log, stream) == [3]


def test_where_nothing_is_acknowledged_each_comes_once(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(ack="none", max_ack_pending=1)
    assert bring(log, stream, [3, 4])[:3] == (20, 2, 0)
    assert take(log, stream) == [3, 4]
    assert take(log, stream) == []
    assert kept(log, stream) == 0


def test_an_acknowledgement_that_covers_what_is_before_it_covers_those_that_were_delivered(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(ack="all", delivered=20)
    bring(log, stream, [3, 4])
    assert take(log, stream, 3) == [3, 4, 21]
    bring(log, stream, [5], replay=8)
    done(log, stream, 21)
    assert take(log, stream, 1) == [5]


def test_what_is_erased_comes_no_more(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    bring(log, stream, [3, 4])
    assert log.run(dead_letters.erase(stream, "g", offset=3)) == 1
    assert take(log, stream) == [4]


def test_who_waits_is_told(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    with log.client.pubsub() as heard:
        heard.subscribe(keys.wake(stream))
        heard.get_message(timeout=5)
        bring(log, stream, [3])
        told = heard.get_message(timeout=5)
    assert told is not None
    assert told["data"] == b"due"


@pytest.mark.parametrize("seed", range(6))
def test_whatever_else_is_done_with_the_group_nothing_of_it_stays_behind(
    log: Log, make_stream: MakeStream, publish_settings: Publish, seed: int
) -> None:
    """Two of a key are never out where the group is ordered by key, what is kept is out, and fsck finds nothing."""
    dice = random.Random(seed)
    stream, ordered = make_stream(), seed % 2 == 1
    wanted = Settings(ordered_by_key=ordered, max_ack_pending=8, max_deliver=3)
    log.run(groups.group_publish(stream, "g", wanted, delivered=0))
    key_of = {0: "?"}
    held: dict[int, str] = {}

    def publish() -> None:
        part = range(len(key_of), len(key_of) + dice.randint(1, 6))
        key_of.update({n: dice.choice("xyz") for n in part})
        log.run(append(stream, [message(n, key=key_of[n]) for n in part]))

    def fetch() -> None:
        found = log.run(groups.fetch(stream, "g", limit=dice.randint(1, 6))).deliveries
        held.update({entries.position(each.entry)[0]: each.lease for each in found})
        if ordered:
            out = log.client.execute_command("HGETALL", keys.leases(stream, "g"))
            leases = zip(out[::2], out[1::2], strict=True)
            of_keys = [key_of[int(offset)] for offset, lease in leases if not lease.startswith(b"0:0")]
            assert len(of_keys) == len(set(of_keys)), of_keys

    def answer() -> None:
        if held:
            offset = dice.choice(list(held))
            lease = held.pop(offset)
            how = dice.choice((groups.ack, groups.ack, groups.nack))
            with suppress(LeaseLost):
                log.run(how(stream, "g", "leases", [lease]))

    def end() -> None:
        if held:
            log.run(groups.term(stream, "g", "offsets", [held.popitem()[0]], reason="bad"))

    def bring_some() -> None:
        first = dice.randint(1, len(key_of))
        part = range(first, min(len(key_of), first + 5))
        letters = [letter(n, key=key_of[n]) for n in part]
        at = log.run(bringing.generation(stream, "g"))
        replay = dice.randint(1, 1_000_000)
        call = {"replay": replay, "generation": at, "known": NEW, "letters": letters, "upto": len(key_of)}
        told = log.run(bringing.bring_back(stream, "g", **call))  # type: ignore[arg-type]
        assert log.run(bringing.bring_back(stream, "g", **{**call, "letters": []}))[1:3] == told[1:3]  # type: ignore[arg-type]

    def limit() -> None:
        publish_settings(stream, max_messages=dice.randint(2, 12))

    def seek() -> None:
        log.run(groups.seek(stream, "g", next_offset=dice.randint(1, len(key_of))))
        held.clear()

    def die_again() -> None:
        log.run(dead_letters.replay_all(stream, "g"))

    acts = [
        publish,
        fetch,
        fetch,
        answer,
        answer,
        answer,
        bring_some,
        bring_some,
        limit,
        end,
        seek,
        die_again,
    ]
    publish()
    for _ in range(150):
        dice.choice(acts)()
        kept_now = set(log.client.hkeys(keys.replayed(stream, "g")))
        assert kept_now <= set(log.client.zrange(keys.pending(stream, "g"), 0, -1))
    assert whats(log, stream) == []
    while held or take_all(log, stream, held):
        with suppress(LeaseLost):
            log.run(groups.ack(stream, "g", "leases", [held.popitem()[1]]))
    state = stands(log, stream)
    assert (state.ack_pending, state.lag, kept(log, stream)) == (0, 0, 0)
    assert not log.client.exists(keys.turns(stream, "g"))


def take_all(log: Log, stream: str, held: dict[int, str]) -> bool:
    """Whether there is anything more."""
    found = log.run(groups.fetch(stream, "g", limit=100)).deliveries
    held.update({entries.position(each.entry)[0]: each.lease for each in found})
    return bool(found)
