"""What the tests of services start from."""

import pytest

from streams.access import SYSTEM
from streams.models import Stream, Workspace
from streams.services.streams import stream_create


@pytest.fixture
def stream(unique: str) -> Stream:
    """A stream of the test's own, in a workspace of its own."""
    made, _ = stream_create(Workspace.objects.create(name=unique), name="orders", settings={}, actor=SYSTEM)
    return made
