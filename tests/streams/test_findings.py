"""What an alert says, by its newest figures."""

import pytest

from streams.findings import Finding, InStatus, found, kept
from streams.reasons import NoConsumers
from tests.findings import over

STOPPED = InStatus(
    stream="orders", group="billing", status="stopped", text="No consumers.", why=NoConsumers(117_000, 3)
)


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (over("lag", 5200, limit=1000), "Group billing of orders: lag 5,200, above 1,000."),
        (over("lag", 8, limit=10, clear=5), "Group billing of orders: lag 8; resolved at 5."),
        (over("lag_seconds", 117.4, limit=60), "Group billing of orders: time lag 1 min 57 s, above 1 min."),
        (over("lag_seconds", 2.72, limit=0.5), "Group billing of orders: time lag 2.72 s, above 0.5 s."),
        (over("dead_letters", 3, limit=0), "Group billing of orders: dead letters 3, above 0."),
        (
            over("no_consumer", 7384, limit=3600),
            "Group billing of orders: no consumer for 2 h 3 min, above 1 h.",
        ),
        (
            over("retention_edge", 90, limit=300),
            "Group billing of orders: oldest removed by retention in 1 min 30 s, below 5 min.",
        ),
        (over("rate_above", 0.2979, limit=0.1, group=""), "Stream orders: rate 0.298/s, above 0.1/s."),
        (over("rate_below", 12, limit=10, clear=15, group=""), "Stream orders: rate 12/s; resolved at 15/s."),
        (
            STOPPED,
            "Group billing of orders is stopped: No consumers: nobody has fetched for 1 min 57 s; 3 messages waiting.",
        ),
    ],
)
def test_it_says_the_figure_and_the_limit_in_their_unit(finding: Finding, words: str) -> None:
    assert finding.words() == words
    assert found(kept(finding)) == finding


@pytest.mark.parametrize(
    "text", ["", '{"type":"of a later version","stream":"orders"}', '{"type":"in status"}']
)
def test_what_only_another_version_knows_is_nothing(text: str) -> None:
    assert found(text) is None
