"""An erasure of deleted streams means those that were deleted when it was asked for."""

import pytest

from okmq.analytics.process import Analytics
from streams.access import SYSTEM, Caller
from streams.log.entries import NewMessage
from streams.models import Erasure, Stream, Workspace
from streams.services.erasures import erasure_request
from streams.services.streams import stream_delete
from tests.okmq.analytics.working import due, work
from tests.spark.published import Published

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]


def made(here: Published, messages: int) -> Stream:
    """A stream ``a`` with so many messages."""
    workspace = Workspace.objects.get(pk=here.workspace_id)
    stream_id = here.stream("a")
    here.publish(stream_id, [NewMessage(id=f"m{n}", body=b"1") for n in range(messages)])
    return Stream.objects.create(workspace=workspace, name="a", stream_id=stream_id)


def asked(stream: Stream) -> Erasure:
    caller = Caller(stream.workspace, frozenset({"erase"}), SYSTEM)
    return erasure_request(caller, stream="a", deleted=True)


def test_one_that_was_there_then_keeps_its_history(analytics: Analytics, here: Published) -> None:
    first = made(here, 3)
    due(analytics)
    stream_delete(first, actor=SYSTEM)
    second = made(here, 5)
    due(analytics)
    before = asked(second)
    stream_delete(second, actor=SYSTEM)
    after = asked(second)
    work(analytics)
    for erasure in (before, after):
        erasure.refresh_from_db()
    assert [(each.state, each.messages) for each in (before, after)] == [("succeeded", 3), ("succeeded", 5)]
