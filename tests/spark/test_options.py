"""The source's options: what is taken, what is refused, in words that help."""

import json
import logging

import pytest

from spark import schemas
from spark.options import KNOWN, OptionError, parse
from spark.source import OkmqDataSource

GOOD = {"url": "unix:///run/s", "stream": "orders"}


def test_defaults() -> None:
    options = parse(GOOD)
    assert (options.workspace, options.streams) == ("default", ("orders",))
    assert (options.starting, options.ending, options.max_offsets) == (None, None, None)
    assert options.fail_on_data_loss
    assert not options.archive


def test_names_of_options_are_case_insensitive() -> None:
    options = parse({**GOOD, "STARTINGOFFSETS": "Earliest", "maxoffsetspertrigger": "7"})
    assert (options.starting, options.max_offsets) == ("earliest", 7)


def test_several_names_lose_their_blanks_and_doubles() -> None:
    assert parse({**GOOD, "stream": "a, b,a,c*"}).streams == ("a", "b", "c*")


def test_a_map_of_offsets() -> None:
    assert parse({**GOOD, "startingOffsets": '{"orders": 42, "x": -2}'}).starting == {"orders": 42, "x": -2}


def test_the_url_comes_from_the_environment_when_it_is_not_given() -> None:
    environ = {"OKMQ_REDIS_URL": "redis://localhost"}
    assert parse({"stream": "orders"}, environ=environ).url == "redis://localhost"


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00.0001Z", "2026-01-01T01:00:00.001+01:00", "1767225600001"]
)
def test_a_time_is_the_first_millisecond_that_is_not_before_it(text: str) -> None:
    assert parse({**GOOD, "startingTimestamp": text}).starting_ms == 1_767_225_600_001


def test_the_history_is_not_read_by_time() -> None:
    with pytest.raises(OptionError, match="view=archive"):
        parse({**GOOD, "view": "archive", "endingTimestamp": "1"})


def test_so_does_that_of_the_streams_in_memory() -> None:
    environ = {"OKMQ_MEMORY_REDIS_URL": "redis://localhost:6380"}
    assert parse(GOOD, environ={}).memory_url is None
    assert parse(GOOD, environ=environ).memory_url == "redis://localhost:6380"
    assert parse({**GOOD, "memoryUrl": "unix:///m"}, environ=environ).memory_url == "unix:///m"


def test_without_any_url_the_error_names_both_places() -> None:
    with pytest.raises(OptionError, match=r"url.*OKMQ_REDIS_URL"):
        parse({"stream": "orders"}, environ={})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stream", ""),
        ("stream", "a,,b"),
        ("stream", "a b"),
        ("url", "http://localhost"),
        ("memoryUrl", "localhost"),
        ("workspace", " "),
        ("startingOffsets", "first"),
        ("startingOffsets", "[1]"),
        ("startingOffsets", "{}"),
        ("startingOffsets", '{"a": "1"}'),
        ("startingOffsets", '{"a": 0}'),
        ("startingOffsets", '{"a": true}'),
        ("endingOffsets", '{"a": 1.5}'),
        ("maxOffsetsPerTrigger", "0"),
        ("maxOffsetsPerTrigger", "-1"),
        ("minPartitions", "many"),
        ("minPartitions", "0"),
        ("minPartitions", "-2"),
        ("rowsPerPartition", "1.5"),
        ("failOnDataLoss", "maybe"),
        ("failOnDataLoss", "0"),
        ("failOnDataLoss", ""),
        ("view", "all"),
        ("startingTimestamp", "yesterday"),
        ("startingTimestamp", "2026-01-01"),
        ("startingTimestamp", "-1"),
        ("endingTimestamp", "9999999999999999"),
        ("startingOffsetsByTimestampStrategy", "earliest"),
    ],
)
def test_a_refusal_names_the_option_and_the_value(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=name):
        parse({**GOOD, name: value})


@pytest.mark.parametrize("name", ["url", "memoryUrl"])
@pytest.mark.parametrize("value", ["valkey://:canary@db:6379", "redis://:canary/2@db:6379"])
def test_an_address_that_cannot_be_used_is_not_shown(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"^Option {name}: expected ") as refused:
        parse({**GOOD, name: value})
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("name", ["ofset", "startingoffset", "subscribe"])
def test_an_unknown_option_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(OptionError, match=rf"'{name}'.*startingOffsets"):
        parse({**GOOD, name: "4"})


BATCH = {
    '{"startingOffsets": "LATEST"}': r"startingOffsets='latest': expected earliest or a JSON object",
    '{"startingOffsets": {"a": 5, "b": -1}}': r"startingOffsets: -1 \(latest\) is given for 'b'; expected earliest",
    '{"endingOffsets": "earliest"}': r"endingOffsets='earliest': expected latest or a JSON object",
    '{"endingOffsets": {"a": -2, "b": 7}}': r"endingOffsets: -2 \(earliest\) is given for 'a'; expected latest",
    '{"startingOffsets": "latest", "endingTimestamp": "1"}': "startingOffsets='latest'",
    '{"endingOffsets": "earliest", "startingTimestamp": "1"}': "endingOffsets='earliest'",
}


def source(options: str) -> OkmqDataSource:
    """The source with these options; maps are given as Spark has them, as text."""
    found = json.loads(options).items()
    given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in found}
    return OkmqDataSource({**GOOD, **given})


@pytest.mark.parametrize("options", BATCH)
def test_a_batch_that_could_have_no_rows_is_refused(options: str) -> None:
    with pytest.raises(OptionError, match=BATCH[options]):
        source(options).reader(schemas.MESSAGES)


@pytest.mark.parametrize(
    "options",
    [
        '{"startingOffsets": "earliest", "endingOffsets": "latest"}',
        '{"startingOffsets": {"orders": -2}, "endingOffsets": {"orders": -1}}',
        '{"startingTimestamp": "1", "startingOffsets": "latest"}',
        '{"endingTimestamp": "1", "endingOffsets": {"orders": -2}}',
    ],
)
def test_other_bounds_of_a_batch_are_taken_and_a_time_goes_before_an_offset(options: str) -> None:
    source(options).reader(schemas.MESSAGES)


@pytest.mark.parametrize("asked", ['"latest"', '{"orders": -1}'])
def test_a_streaming_query_may_start_at_the_end(asked: str) -> None:
    source(f'{{"startingOffsets": {asked}}}').streamReader(schemas.MESSAGES)


def test_what_limits_a_micro_batch_is_told_to_be_ignored_by_a_batch(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        source('{"maxOffsetsPerTrigger": "10"}').reader(schemas.MESSAGES)
    assert caplog.messages == ["Option maxOffsetsPerTrigger is for streaming queries; a batch ignores it."]


def test_every_option_is_documented_where_a_user_looks() -> None:
    described = OkmqDataSource.__doc__ or ""
    assert [name for name in KNOWN if f"``{name}``" not in described] == []
