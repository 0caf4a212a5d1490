"""Questions that somebody else answers: who counts, and who does where nobody is there."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from redis.client import PubSub

from streams.log import config, groups, keys, questions
from streams.log.append import append
from streams.log.censuses import Censuses
from streams.log.client import Log
from streams.log.errors import StreamNotFound
from streams.log.following import Following
from streams.log.groups import Settings
from streams.log.preview import WITHIN_S, Preview, Purge, Supposed, preview
from tests.census import counting
from tests.streams.log.conftest import DEFAULTS
from tests.streams.log.messages import fill, message

MESSAGES = 20_000
ONE_A_KEY = {"max_messages_per_key": 1}


@pytest.fixture
def counts(redis_url: str, tmp_path: Path) -> Iterator[None]:
    with counting(redis_url, tmp_path):
        yield


def keyed(log: Log, stream: str, first: int = 0, stop: int = MESSAGES) -> None:
    for at in range(first, stop, 1000):
        log.run(append(stream, [message(n, key=f"k.{n % 10}") for n in range(at, at + 1000)]))


@pytest.fixture
def stream(log: Log, unique: str) -> str:
    """One that is listed."""
    made = config.Registered(
        stream_id=keys.stream_id(), name=unique, workspace="default", workspace_id=1, archive=False
    )
    log.run(config.stream_publish(made, DEFAULTS))
    return made.stream_id


def test_what_comes_into_a_stream_with_keys_is_counted_before_anybody_asks(log: Log, stream: str) -> None:
    censuses = Censuses()
    following = Following(log, censuses)
    followed(following, stream, censuses)
    assert stream not in set(censuses), "it holds nothing yet"
    keyed(log, stream)
    log.run(groups.group_publish(stream, "some", Settings(filter_keys=("k.1", "k.2"))))
    followed(following, stream, censuses)
    held, of = censuses.of(stream), {"some": ("k.1", "k.2")}
    told = log.run(preview(stream, {"max_messages_per_key": 7}, of, held=held, within_s=0, always=0))
    assert (told.messages, told.is_complete, told.as_of) == (MESSAGES - 70, True, MESSAGES)
    assert told.unread == {"some": 2 * (MESSAGES // 10 - 7)}


def followed(following: Following, stream: str, censuses: Censuses) -> None:
    """Look at all streams twice, and read on in those that have grown."""
    for _ in range(2):
        following.look_around()
        while following.cursor:
            following.look_around()
    while following.go_on():
        pass


def test_of_a_stream_without_keys_and_filters_nothing_is_read(log: Log, stream: str) -> None:
    censuses = Censuses()
    following = Following(log, censuses)
    fill(log, stream, 100)
    followed(following, stream, censuses)
    assert stream not in set(censuses)
    log.run(groups.group_publish(stream, "some", Settings(filter_keys=("k.1",))))
    followed(following, stream, censuses)
    assert stream in set(censuses)


def test_a_stream_that_is_no_more_is_forgotten(log: Log, stream: str, tmp_path: Path) -> None:
    censuses = Censuses(tmp_path)
    following = Following(log, censuses)
    keyed(log, stream)
    (tmp_path / "gone.npz").touch()
    followed(following, stream, censuses)
    log.run(config.streams_remove([(stream, 1, "it")]))
    followed(following, stream, censuses)
    assert stream not in set(censuses)
    assert not (tmp_path / "gone.npz").exists()


def test_who_asks_is_answered_by_who_counts(log: Log, stream: str, counts: None, redis_url: str) -> None:
    keyed(log, stream)
    told = questions.ask(log, stream, ONE_A_KEY, {}, within_s=30)
    assert (told.messages, told.first_offset, told.is_complete) == (MESSAGES - 10, MESSAGES - 9, True)
    keyed(log, stream, MESSAGES, MESSAGES + 1000)
    assert questions.ask(log, stream, ONE_A_KEY, {}, within_s=0.1).messages == MESSAGES + 990
    assert "numpy" not in loaded_by(redis_url, stream), "who asks counts nothing itself"


@pytest.mark.usefixtures("counts")
def test_who_counts_is_told_of_groups_that_the_log_does_not_know(log: Log, stream: str) -> None:
    keyed(log, stream)
    of, begins = {"new": ("k.1",), "late": ()}, {"new": 0, "late": MESSAGES - 5}
    told = questions.ask(log, stream, {"retention": "interest"}, of, begins=begins, within_s=30)
    assert (told.messages, told.is_complete) == (MESSAGES - 5 - MESSAGES // 10, True)


@pytest.mark.usefixtures("counts")
def test_who_counts_is_told_of_a_purge_by_key(log: Log, stream: str) -> None:
    keyed(log, stream)
    purge = Purge(below=1001, keys=("k.1", "k.2"))
    told = questions.ask(log, stream, {}, {}, purge=purge, within_s=30)
    assert (told.messages, told.first_offset, told.is_complete) == (200, 1, True)


@pytest.mark.usefixtures("counts")
def test_who_counts_is_told_how_a_group_would_stand(log: Log, stream: str) -> None:
    keyed(log, stream, 0, 1000)
    log.run(groups.group_publish(stream, "some", Settings(filter_keys=("k.1", "k.2"))))
    supposed = Supposed(group="some", delivered=500)
    told = questions.ask(
        log,
        stream,
        {"retention": "interest"},
        {"some": ("k.1", "k.2")},
        supposed=supposed,
        within_s=30,
    )
    assert (told.messages, told.already, told.is_complete) == (900, 800, True)


def loaded_by(url: str, stream: str) -> str:
    """The modules of a process that asks."""
    code = (
        "import sys; from streams.log.client import Log; from streams.log.questions import ask\n"
        f"told = ask(Log({url!r}), {stream!r}, {ONE_A_KEY!r}, {{}}, within_s=5)\n"
        "assert told.is_complete; print(*sys.modules)"
    )
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_a_limit_that_is_arithmetic_asks_nobody(log: Log, stream: str) -> None:
    fill(log, stream, 10)
    assert questions.ask(log, stream, {"max_messages": 3}, {"all": ()}, within_s=0).messages == 7


def test_where_nobody_counts_who_asks_looks_itself(log: Log, stream: str) -> None:
    for first in range(0, MESSAGES, 1000):
        log.run(append(stream, [message(n, key=f"k.{n % 10}") for n in range(first, first + 1000)]))
    short = questions.ask(log, stream, ONE_A_KEY, {}, within_s=0)
    assert not short.is_complete
    assert 0 < short.counted < 1
    assert questions.ask(log, stream, ONE_A_KEY, {}, within_s=30).messages == MESSAGES - 10


@pytest.mark.usefixtures("counts")
def test_what_is_refused_is_refused_by_who_was_asked(log: Log) -> None:
    with pytest.raises(StreamNotFound):
        questions.ask(log, keys.stream_id(), ONE_A_KEY, {}, within_s=0.1)


def test_it_is_not_asked_again_where_the_answer_would_come_too_late(log: Log, stream: str) -> None:
    asked: list[questions.Question] = []
    part = Preview(
        messages=1,
        bytes=1,
        first_offset=2,
        oldest_ms=None,
        unread={},
        as_of=9,
        is_complete=False,
        counted=0.1,
    )
    over = threading.Event()

    def count(channel: PubSub) -> None:
        """As one does for which each answer takes more than half of the time that there is."""
        while not over.is_set():
            found = channel.get_message(timeout=0.05)
            if found and found["type"] == "message":
                asked.append(msgspec.json.decode(found["data"], type=questions.Question))
                over.wait(0.6 * WITHIN_S)
                log.client.execute_command("PUBLISH", asked[-1].told, msgspec.json.encode(part))

    with log.client.pubsub() as channel:
        channel.subscribe(keys.CENSUS_ASKED)
        counting_thread = threading.Thread(target=count, args=(channel,))
        counting_thread.start()
        try:
            told = questions.ask(log, stream, ONE_A_KEY, {}, within_s=WITHIN_S)
        finally:
            over.set()
            counting_thread.join()
    assert told == part
    assert len(asked) == 1
