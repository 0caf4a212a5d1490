"""A reply that cannot be read, or that we read wrongly: an error of the log, and where it came about is logged."""

import logging

import pytest

from streams.log import keys
from streams.log.client import Log, Op
from streams.log.errors import Damaged


def read_wrongly(key: str) -> Op[int]:
    """An operation that takes the reply for a number."""
    return int((yield ("GET", key)))


def test_where_a_reply_could_not_be_read_is_logged_once(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    key = keys.meta(keys.stream_id())
    log.client.set(key, "no number")
    with caplog.at_level(logging.WARNING, logger="streams.log.damage"):
        for _ in range(3):
            with pytest.raises(Damaged, match="invalid literal"):
                log.run(read_wrongly(key))
    (record,) = caplog.records
    assert "invalid literal" in record.getMessage()
    assert "read_wrongly" in record.__dict__["traceback"]
    log.client.delete(key)
