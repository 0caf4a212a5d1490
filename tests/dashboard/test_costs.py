"""What pages cost where there are many streams: a plain read for each, a closer look only at what is shown."""

import pytest
from django.test import Client

from dashboard.lists.stream_list import PAGE_SIZE, SORTS
from streams.access import SYSTEM
from streams.models import Workspace
from streams.services.streams import streams_create
from tests.costs import cost_of

pytestmark = pytest.mark.long

MANY = 400
MORE = 40
"""Round trips and statements that a page needs for the rest: the session, the samples, the newest events."""


@pytest.fixture
def many(workspace: Workspace) -> None:
    chosen = {"discard": "new", "max_messages": 5}
    streams_create(workspace, wanted=[(f"s{n:03}", chosen) for n in range(MANY)], actor=SYSTEM)


@pytest.mark.parametrize(
    "path", ["/", "/live/now/?topic=overview", *(f"/streams/?sort=-{column}" for column in SORTS)]
)
def test_a_page_does_not_look_closely_at_every_stream(owner: Client, many: None, path: str) -> None:
    cost = cost_of(lambda: owner.get(path))
    assert cost.statements <= MORE
    assert cost.trips <= MORE
    assert cost.commands <= 2 * MANY + PAGE_SIZE + MORE
