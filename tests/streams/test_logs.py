"""Log lines: one JSON object each, with the id of the request that they belong to."""

import contextvars
import json
import logging
from typing import Any

import pytest

from streams import bearer
from streams.logs import JsonFormatter
from tests.exchanges import ended


def line(message: str) -> dict[str, Any]:
    record = logging.LogRecord("streams.api", logging.WARNING, __file__, 1, message, (), None)
    found: dict[str, Any] = json.loads(JsonFormatter().format(record))
    return found


def test_a_line_inside_a_request_has_its_id() -> None:
    def inside() -> dict[str, Any]:
        ended()  # begins the current exchange of this context
        return line("Slow.")

    assert contextvars.copy_context().run(inside)["request_id"] == "given-1"


def test_a_line_outside_of_one_has_none() -> None:
    assert "request_id" not in contextvars.Context().run(line, "Slow.")


@pytest.mark.parametrize("hostile", ["a\nb", "\x1b[2J", "\u2028", "é\x9b"])
def test_what_is_logged_stays_in_its_line_in_plain_ascii(hostile: str) -> None:
    record = logging.LogRecord("streams", logging.INFO, __file__, 1, "%s", (hostile,), None)
    text = JsonFormatter().format(record)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text)["message"] == hostile


def test_a_token_is_blotted_out_wherever_it_stands_in_a_line() -> None:
    secret = bearer.make()
    record = logging.LogRecord(
        "django.request", logging.WARNING, __file__, 1, "Not Found: /x/%s", (secret,), None
    )
    record.request = f"GET /x?token={secret}"
    text = JsonFormatter().format(record)
    assert secret not in text
    assert text.count("okmq_***") == 2
