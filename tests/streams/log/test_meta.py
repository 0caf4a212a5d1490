"""Counters and settings, packed by the scripts and read in Python."""

import re

import msgspec
import pytest

from streams.log import config, keys, meta, scripts, stats, trim
from streams.log.append import append
from streams.log.client import Log
from streams.log.commit import commit
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import browse, fill, message

SETTINGS = {"dedup_window": 86_400, "max_message_bytes": 1_048_576, "discard": "old"}


def test_scripts_and_python_know_the_same_order() -> None:
    text = (scripts.LUA / "lib" / "state.lua").read_text()
    loaded = sorted(re.findall(r"(\w+) = held\[(\d+)\]", text), key=lambda pair: int(pair[1]))
    (packed,) = re.findall(r"cmsgpack\.pack\(\{(.*?)\}\)", text, re.DOTALL)
    assert [name for name, _ in loaded] == list(meta.Counters.__struct_fields__)
    assert re.findall(r"state\.(\w+)", packed) == [*meta.Counters.__struct_fields__, "later"]


def test_what_a_later_version_counts_stays_while_hosts_of_both_write(log: Log, stream: str) -> None:
    fill(log, stream, 2)
    held = msgspec.msgpack.decode(log.client.hget(keys.meta(stream), meta.COUNTERS))
    log.client.hset(keys.meta(stream), meta.COUNTERS, msgspec.msgpack.encode([*held, 7, "more"]))
    fill(log, stream, 1, first=3)
    now = msgspec.msgpack.decode(log.client.hget(keys.meta(stream), meta.COUNTERS))
    assert (now[0], now[len(held) :]) == (3, [7, "more"])
    assert log.run(meta.counters_of([stream]))[stream].messages == 3


def test_python_reads_what_the_scripts_counted(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, body=b"12345") for n in (1, 2, 3, 3)]))
    log.run(commit(stream, 2))
    log.run(trim.purge(stream, below=2))
    counters = log.run(meta.counters_of([stream, "gone"]))[stream]
    assert (counters.last, counters.last_id, counters.cum, counters.widest) == (3, "id-3", 15, 5)
    assert (counters.messages, counters.bytes, counters.floor, counters.floor_cum) == (2, 10, 2, 5)
    assert (counters.committed, counters.duplicates) == (2, 1)


def test_a_range_that_a_version_before_noted_is_taken(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(archive=True)
    fill(log, stream, 9)
    held = log.run(meta.counters_of([stream]))[stream]
    before = msgspec.structs.replace(held, floor=8, messages=2, owed=4, purged=7)
    log.client.hset(keys.meta(stream), meta.COUNTERS, meta.pack(before))

    def taken() -> list[range]:
        return log.run(meta.taken_of(log.run(meta.counters_of([stream])))).get(stream, [])

    assert taken() == [range(4, 8)]
    log.run(trim.drop(stream))
    assert [int(entry[0].split(b"-")[0]) for entry in log.client.xrange(keys.log(stream))] == [1, 2, 3, 8, 9]
    assert taken() == [range(4, 8)]
    assert log.run(meta.counters_of([stream]))[stream].purged == 0
    log.run(config.archived_set(stream, 9))
    log.run(trim.drop(stream))
    assert log.client.hget(keys.meta(stream), meta.TAKEN) is None


def test_counters_are_exact_up_to_the_largest_offset(log: Log, stream: str) -> None:
    last = 2**53 - 2
    far = meta.Counters(last=last, last_id="far", floor=last + 1, committed=last)
    log.client.hset(keys.meta(stream), "counters", meta.pack(far))
    assert fill(log, stream, 1)[0].offset == last + 1
    assert log.run(stats.inspect(stream)).offset == last + 1


def test_looking_writes_nothing(log: Log, stream: str) -> None:
    fill(log, stream, 3)
    before = log.client.execute_command("INFO", "commandstats")
    log.run(stats.inspect(stream))
    assert hset_calls(log.client.execute_command("INFO", "commandstats")) == hset_calls(before)


@pytest.mark.parametrize("last", ["", "2"])
def test_a_stream_of_before_goes_on_where_it_stood(
    log: Log, make_stream: MakeStream, unique: str, last: str
) -> None:
    stream = make_stream()
    fill(log, stream, 2 if last else 0)
    held = log.run(meta.counters_of([stream]))[stream]
    fields = {name: getattr(held, name) for name in meta.Counters.__struct_fields__} if last else {}
    log.client.delete(keys.meta(stream))
    log.client.hset(keys.meta(stream), mapping={"name": unique, "workspace": 1, "ttl": 9, **fields})
    registered = config.Registered(
        stream_id=stream, name=unique, workspace="default", workspace_id=1, archive=False
    )
    log.run(config.stream_publish(registered, SETTINGS))
    assert log.run(meta.counters_of([stream])) == {stream: held}
    assert [found.id for found in browse(log, stream)] == (["id-1", "id-2"] if last else [])
    assert fill(log, stream, 1, first=3)[0].offset == held.last + 1


def hset_calls(info: bytes) -> str:
    found = re.search(r"cmdstat_hset:calls=(\d+)", info.decode())
    return found[1] if found else "0"
