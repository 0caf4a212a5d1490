"""A census that was not complete is completed without another question."""

from collections.abc import Iterator

import pytest

from streams.log import keys
from streams.log.ahead import Ahead
from streams.log.append import append
from streams.log.census import KEPT, MOST_PLAIN
from streams.log.client import Log
from streams.log.preview import Preview, preview
from tests.streams.log.messages import fill, message
from tests.waiting import until

MESSAGES = 20_000


@pytest.fixture
def ahead() -> Iterator[Ahead]:
    making = Ahead(KEPT)
    yield making
    until(lambda: not making.is_busy(), within_s=30)


def ask(log: Log, stream: str, most: int = 1) -> Preview:
    """One question that looks at hardly anything itself."""
    return log.run(preview(stream, {"max_messages_per_key": most}, {}, within_s=0, always=0))


def keyed(log: Log, stream: str) -> None:
    for first in range(0, MESSAGES, 1000):
        log.run(append(stream, [message(n, key=f"k.{n % 10}") for n in range(first, first + 1000)]))


@pytest.mark.parametrize("widest", [1, MOST_PLAIN + 1])
def test_after_the_first_question_the_rest_is_looked_at_by_itself(
    log: Log, stream: str, ahead: Ahead, widest: int
) -> None:
    keyed(log, stream)
    log.run(append(stream, [message(MESSAGES, body=b"7" * widest, key="k.0")]))
    assert not ask(log, stream).is_complete
    ahead.go_on(log, stream)
    until(lambda: not ahead.is_busy(), within_s=30)
    told = ask(log, stream, most=7)
    assert (told.messages, told.is_complete, told.as_of) == (MESSAGES + 1 - 70, True, MESSAGES + 1)


def test_questions_meanwhile_go_on_with_what_it_has_reached(log: Log, stream: str, ahead: Ahead) -> None:
    keyed(log, stream)
    seen = [ask(log, stream).messages]
    ahead.go_on(log, stream)
    while ahead.is_busy():
        told = ask(log, stream)
        seen.append(told.messages)
        if not told.is_complete:
            ahead.go_on(log, stream)
    assert seen == sorted(seen)
    assert ask(log, stream).messages == MESSAGES - 10


def test_it_counts_what_comes_while_it_goes_on(log: Log, stream: str, ahead: Ahead) -> None:
    keyed(log, stream)
    ask(log, stream)
    ahead.go_on(log, stream)
    fill(log, stream, 3000, first=MESSAGES + 1)
    until(lambda: not ahead.is_busy(), within_s=30)
    told = ask(log, stream, most=3)
    assert (told.messages, told.is_complete, told.as_of) == (MESSAGES - 30, True, MESSAGES + 3000)


def test_it_ends_with_the_stream(log: Log, stream: str, ahead: Ahead) -> None:
    keyed(log, stream)
    ask(log, stream)
    log.client.execute_command("UNLINK", keys.meta(stream))
    ahead.go_on(log, stream)
    until(lambda: not ahead.is_busy(), within_s=30)
    assert KEPT.take(stream) is None


def test_it_has_nothing_to_do_where_nobody_asked(log: Log, stream: str, ahead: Ahead) -> None:
    keyed(log, stream)
    ahead.go_on(log, stream)
    until(lambda: not ahead.is_busy(), within_s=30)
    assert KEPT.take(stream) is None
