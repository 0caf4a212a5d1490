"""What the worker is told to tend is what has something to do, and nothing else."""

from collections.abc import Callable

import pytest

from streams.log import config, groups, keys, removals, trim
from streams.log.append import append
from streams.log.client import Log, Op, Script
from streams.log.groups import Settings
from tests.streams.log.messages import fill, message
from tests.streams.upkeep.conftest import MakeStream
from tests.streams.upkeep.test_retention import tend
from tests.waiting import until

Change = Callable[[Log, str], object]
KEYED = [message(n, key="k") for n in range(1, 4)]


def settings(log: Log, stream: str, **given: object) -> None:
    registered = config.Registered(
        stream_id=stream, name=stream, workspace="upkeep", workspace_id=77, archive=False
    )
    defaults = {"dedup_window": 86_400, "max_message_bytes": 1_048_576, "discard": "old"}
    log.run(config.stream_publish(registered, {**defaults, **given}))


def is_due(log: Log, stream: str) -> bool:
    return log.run(trim.due([stream])) == [stream]


CHANGES: list[tuple[str, Change]] = [
    ("a limit was lowered", lambda log, stream: settings(log, stream, max_messages=1)),
    ("a time to live is over", lambda log, stream: settings(log, stream, ttl=1)),
    ("a message's own time is over", lambda log, stream: log.run(_short_lived(stream))),
    ("less of a key is kept", lambda log, stream: settings(log, stream, max_messages_per_key=1)),
    ("a purge was cut short", lambda log, stream: log.run(_only_hidden(stream))),
    ("what was set aside is over", lambda log, stream: log.run(_aside(stream))),
]


def _only_hidden(stream: str) -> Op[None]:
    yield Script("trim", [keys.log(stream), keys.meta(stream), keys.gone(stream)], ["below", 3])


def _short_lived(stream: str) -> Op[object]:
    return append(stream, [message(9, ttl_s=1)])


def _aside(stream: str) -> Op[None]:
    yield from removals.delete(stream, [2], keep_ms=1, facts={})


@pytest.mark.parametrize("change", [change for _, change in CHANGES], ids=[what for what, _ in CHANGES])
def test_a_stream_is_due_until_it_was_tended(
    valkey: str, log: Log, make_stream: MakeStream, change: Change
) -> None:
    stream = make_stream()
    log.run(append(stream, KEYED))
    assert not is_due(log, stream)
    change(log, stream)
    until(lambda: is_due(log, stream))

    def is_settled() -> bool:
        tend(valkey, stream)
        return not is_due(log, stream)

    until(is_settled)


def test_an_index_of_keys_that_nobody_needs_any_more_is_due(
    valkey: str, log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream()
    log.run(append(stream, KEYED))
    settings(log, stream, max_messages_per_key=5)
    log.run(trim.keep_newest_of_keys(stream))
    assert not is_due(log, stream)
    settings(log, stream)
    assert is_due(log, stream)
    tend(valkey, stream)
    assert not is_due(log, stream)


def test_a_stream_whose_groups_count_by_key_or_decide_what_stays_is_always_due(
    log: Log, make_stream: MakeStream
) -> None:
    filtered, by_interest = make_stream(), make_stream(name="by-interest", retention="interest")
    log.run(groups.group_publish(filtered, "g", Settings(filter_keys=("a.*",))))
    assert log.run(trim.due([filtered, by_interest])) == [filtered, by_interest]


def test_a_stream_that_is_not_there_is_due_so_that_who_tends_it_hears_of_it(log: Log) -> None:
    assert log.run(trim.due(["aaaaaaaaaaaa"])) == ["aaaaaaaaaaaa"]


def test_looking_at_streams_without_work_is_one_call_each(
    valkey: str, log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream()
    fill(log, stream, 5)
    before = calls(log)
    tend(valkey, stream)
    # One look, one at the stream that is not there, and what follows from that.
    assert calls(log) - before == 3


def calls(log: Log) -> int:
    text: str = log.client.execute_command("INFO", "commandstats").decode()
    (line,) = [line for line in text.splitlines() if line.startswith("cmdstat_fcall:")]
    return int(line.partition("calls=")[2].partition(",")[0])
