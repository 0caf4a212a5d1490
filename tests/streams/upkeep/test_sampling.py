import asyncio
import json

from streams.log import commit, stats, trim
from streams.log.client import AsyncLog, Log
from streams.log.flow import Flow
from streams.upkeep.sampling import TOUCHED_AT_ONCE, Sample, Sampler, flows, record
from tests.streams.log.messages import browse, fill
from tests.streams.upkeep.conftest import MakeStream


def ticks(url: str, stream: str, *steps: object, every_ms: int = 1000) -> list[Sample | None]:
    """One sample of a stream a second, each after a step; None where the stream was not sampled."""

    async def run() -> list[Sample | None]:
        log = AsyncLog(url)
        while await log.run(stats.take_touched(TOUCHED_AT_ONCE)):
            pass  # what the tests before have touched is more than one sample takes
        sampler = Sampler(log)
        found: list[Sample | None] = []
        for n, step in enumerate(steps):
            if callable(step):
                step()
            samples = await sampler.sample(at_ms=1_000_000 + n * every_ms)
            found.append(next((sample for sample in samples if sample.stream_id == stream), None))
        await log.close()
        return found

    return asyncio.run(run())


def test_a_sample_says_how_a_stream_stands_and_how_fast_it_changes(
    valkey: str, log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream()

    def publish() -> None:
        fill(log, stream, 10, body=b"12345")
        log.run(commit.commit(stream, 4))
        log.run(stats.touch([stream]))

    before, after = ticks(valkey, stream, lambda: log.run(stats.touch([stream])), publish)
    assert before is not None
    assert after is not None
    assert (before.messages, before.rate_in) == (0, 0)
    assert (after.messages, after.bytes, after.lag, after.committed) == (10, 50, 6, 4)
    assert (after.rate_in, after.bytes_in, after.rate_out) == (10, 50, 4)
    assert after.appended_bytes == 50


def test_what_came_to_a_quiet_stream_while_nobody_sampled_is_spread_over_that_time(
    valkey: str, log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream()

    def publish() -> None:
        fill(log, stream, 600)
        log.run(stats.touch([stream]))

    steps = (lambda: log.run(stats.touch([stream])), publish)
    rates = [sample and sample.rate_in for sample in ticks(valkey, stream, *steps, every_ms=300_000)]
    assert rates == [0, 2]


def test_a_sample_says_how_much_retention_has_removed_of_a_stream(
    valkey: str, log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(max_messages=4)

    def publish() -> None:
        fill(log, stream, 10)
        log.run(trim.delete(stream, [9]))
        log.run(stats.touch([stream]))

    before, after = ticks(valkey, stream, lambda: log.run(stats.touch([stream])), publish)
    assert before is not None
    assert after is not None
    assert (before.removed, after.removed) == (0, 6)


def test_what_comes_with_a_new_stream_counts_in_its_rate(
    valkey: str, log: Log, make_stream: MakeStream
) -> None:
    new, old = make_stream(), make_stream()
    for stream in (new, old):
        fill(log, stream, 10, body=b"12345")
        log.run(commit.commit(stream, 4))
    first_ms = log.run(stats.inspect(new)).first_ms
    assert first_ms

    async def looked_at(at_ms: int, stream: str) -> Sample:
        asynchronous = AsyncLog(valkey)
        log.run(stats.touch([stream]))
        samples = await Sampler(asynchronous).sample(at_ms=at_ms)
        await asynchronous.close()
        return next(sample for sample in samples if sample.stream_id == stream)

    fresh = asyncio.run(looked_at(first_ms + 900, new))
    assert (fresh.rate_in, fresh.bytes_in, fresh.rate_out) == (10, 50, 4)
    known = asyncio.run(looked_at(first_ms + 60_000, old))
    assert (known.rate_in, known.bytes_in, known.rate_out) == (0, 0, 0), "a worker that begins anew"


def test_a_stream_is_sampled_until_it_is_still_and_then_costs_nothing(
    valkey: str, log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream()

    def publish() -> None:
        fill(log, stream, 1, first=log.run(stats.inspect(stream)).offset + 1)
        log.run(stats.touch([stream]))

    found = ticks(valkey, stream, lambda: log.run(stats.touch([stream])), publish, None, None, None, publish)
    assert [sample and sample.rate_in for sample in found] == [0, 1, 0, None, None, 1]


def test_a_stream_without_limits_is_tended_when_it_is_new_and_when_something_went(
    valkey: str, log: Log, make_stream: MakeStream
) -> None:
    free, bounded = make_stream(), make_stream(max_messages=100)

    def publish() -> None:
        for stream in (free, bounded):
            fill(log, stream, 2, first=log.run(stats.inspect(stream)).offset + 1)
            log.run(stats.touch([stream]))

    def purge() -> None:
        log.run(trim.purge(free, below=2))
        log.run(stats.touch([free]))

    found = ticks(valkey, free, publish, publish, purge, publish)
    assert [sample and sample.is_to_tend for sample in found] == [True, False, True, False]
    found = ticks(valkey, bounded, publish, publish)
    assert [sample and sample.is_to_tend for sample in found] == [True, True]


def test_a_record_holds_every_sample_but_the_records_own(
    valkey: str, log: Log, make_stream: MakeStream, unique: str
) -> None:
    metrics, stream = make_stream(name=f"{unique}-metrics"), make_stream()
    fill(log, stream, 2)
    log.run(stats.touch([metrics, stream]))

    async def run() -> None:
        client = AsyncLog(valkey)
        await record(client, metrics, await Sampler(client).sample(at_ms=5000), at_ms=5000)
        await client.close()

    asyncio.run(run())
    (message,) = browse(log, metrics)
    told = json.loads(message.body)
    assert told["at"] == 5000
    assert metrics not in told["streams"]
    assert told["streams"][stream]["messages"] == 2


def test_the_flow_of_a_workspace_is_the_sum_of_its_streams() -> None:
    def sample(stream: str, workspace_id: int, rate: float) -> Sample:
        return Sample(
            stream_id=stream,
            workspace_id=workspace_id,
            name=stream,
            at_ms=5,
            offset=1,
            first_offset=1,
            messages=1,
            bytes=1,
            committed=0,
            lag=1,
            duplicates=0,
            rate_in=rate,
            bytes_in=rate * 10,
            rate_out=rate / 2,
            first_ms=None,
            last_ms=None,
            archived=0,
        )

    found = flows([sample("a", 1, 2.0), sample("b", 1, 4.0), sample("c", 2, 8.0)], at_ms=7)
    assert found == {1: Flow(7, 6.0, 60.0, 3.0), 2: Flow(7, 8.0, 80.0, 4.0)}
