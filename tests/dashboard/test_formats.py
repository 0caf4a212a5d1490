"""Numbers are said on the server as the browser says them: one fixture, two readers."""

import json
from pathlib import Path
from typing import Any

import pytest

from dashboard import formats
from dashboard.formats import FORMATS

FIXTURE: dict[str, list[tuple[Any, str]]] = json.loads(
    Path(__file__).with_name("formats.json").read_text("utf-8")
)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [(name, value, expected) for name, rows in FIXTURE.items() for value, expected in rows],
)
def test_a_number_is_said_as_the_browser_says_it(name: str, value: Any, expected: str) -> None:
    assert FORMATS[name](value) == expected


def test_a_time_span_names_a_day_once() -> None:
    at, minute, day = 1_795_770_000_000, 60_000, 86_400_000
    assert formats.span(at, at + 999) == "2026-11-27 09:00 UTC"
    assert formats.span(at, at + 40 * minute) == "2026-11-27 09:00 to 09:40 UTC"
    assert formats.span(at, at + day) == "2026-11-27 09:00 to 2026-11-28 09:00 UTC"


def test_a_part_is_told_to_be_none_or_all_only_where_it_is() -> None:
    told = {
        0.0: "0 %",
        0.004: "< 1 %",
        0.5: "50 %",
        0.9949: "99 %",
        0.9999: "> 99 %",
        1.0: "100 %",
        None: "–",
    }
    assert {value: formats.share(value) for value in told} == told


def test_one_message_is_no_messages() -> None:
    assert [formats.messages(each) for each in (0, 1, 1204)] == ["0 messages", "1 message", "1,204 messages"]


def test_what_rates_lead_to_is_told_up_to_a_year() -> None:
    year = 365 * 86_400
    assert [formats.foreseen(each) for each in (90, year, year + 1)] == [
        "1 min 30 s",
        "365 d",
        "more than a year",
    ]


def test_every_format_is_in_the_fixture_that_both_sides_share() -> None:
    assert sorted(FIXTURE) == sorted(FORMATS)
