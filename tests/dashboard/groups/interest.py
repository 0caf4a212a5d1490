"""Streams that retain by interest, as tests of what their groups let go use them."""

import re
from typing import Any

from streams import store
from streams.log import stats, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream


def publish(stream: Stream, count: int, *, key: str = "eu.1") -> None:
    """So many more messages."""
    first = store.log().run(stats.inspect(stream.stream_id)).offset
    made = [NewMessage(id=f"m-{first + n}", body=b"1", key=key) for n in range(count)]
    store.log().run(append(stream.stream_id, made))


def left(stream: Stream) -> int:
    """What is there once interest has let go of what nobody wants."""
    store.log().run(trim.release(stream.stream_id))
    return store.log().run(stats.inspect(stream.stream_id)).messages


def text_of(answer: Any) -> str:
    """A page with its spaces made one."""
    return re.sub(r"\s+", " ", answer.content.decode())
