"""What the preview of an erasure counts is what the erasure then takes, wherever the messages are by then."""

from typing import Any

import pytest

from okmq.analytics.process import Analytics
from streams.access import Actor, Caller
from streams.log.entries import NewMessage
from streams.models import Erasure, Query, Stream, Workspace
from streams.services.erasure_previews import ErasurePreview, PreviewState, erasure_preview
from streams.services.erasures import erasure_request
from tests.okmq.analytics.working import due, work
from tests.spark.published import Published

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

ANN = "people.Änn'--1"


def made(here: Published, name: str, **settings: Any) -> Stream:
    workspace = Workspace.objects.get(pk=here.workspace_id)
    archive = settings.get("archive", True)
    stream_id = here.stream(name, **settings)
    return Stream.objects.create(workspace=workspace, name=name, stream_id=stream_id, archive=archive)


def publish(here: Published, stream: Stream, of_ann: int, *, prefix: str) -> None:
    """So many of Ann, each after one without a key and before one of somebody else."""
    keys = [None, ANN, f"{ANN}.more"] * of_ann
    here.publish(
        stream.stream_id, [NewMessage(id=f"{prefix}{n}", body=b"1", key=key) for n, key in enumerate(keys)]
    )


def admin_of(stream: Stream) -> Caller:
    return Caller(stream.workspace, frozenset({"erase"}), Actor("somebody"))


def previewed(analytics: Analytics, stream: Stream, **wanted: Any) -> ErasurePreview:
    first = erasure_preview(admin_of(stream), stream=stream.name, **wanted)
    if first.state == PreviewState.COUNTING:
        assert analytics.queries.answer_next()
    told = erasure_preview(admin_of(stream), stream=stream.name, **wanted)
    assert told.state == PreviewState.COUNTED, told.error
    return told


def erased(analytics: Analytics, stream: Stream, **wanted: Any) -> Erasure:
    erasure = erasure_request(admin_of(stream), stream=stream.name, **wanted)
    work(analytics)
    erasure.refresh_from_db()
    assert erasure.state == "succeeded", erasure.error
    return erasure


def test_in_the_history_in_the_stream_and_hidden_by_a_limit(analytics: Analytics, here: Published) -> None:
    stream, other = made(here, "a", max_messages=5), made(here, "b")
    publish(here, other, 4, prefix="other")
    publish(here, stream, 7, prefix="first")
    due(analytics)
    publish(here, stream, 6, prefix="second")
    told = previewed(analytics, stream, key=ANN)
    assert (told.messages, told.in_stream, told.since) == (13, 2, 0)
    assert ANN not in Query.objects.get().sql
    publish(here, stream, 1, prefix="third")
    told = previewed(analytics, stream, key=ANN)
    assert (told.messages, told.since, Query.objects.count()) == (14, 1, 1)
    done = erased(analytics, stream, key=ANN)
    assert (done.messages, done.progress) == (told.messages, 1.0)
    assert previewed(analytics, stream, key=ANN).messages == 0
    assert previewed(analytics, stream, offset=3).messages == 1
    assert erased(analytics, stream, offset=3).messages == 1
    assert previewed(analytics, stream, offset=3).messages == 0
    assert previewed(analytics, other, key=ANN).messages == 4


def test_what_is_published_after_it_was_asked_for_stays(analytics: Analytics, here: Published) -> None:
    stream = made(here, "a")
    publish(here, stream, 3, prefix="first")
    due(analytics)
    told = previewed(analytics, stream, key=ANN)
    erasure = erasure_request(admin_of(stream), stream=stream.name, key=ANN)
    publish(here, stream, 4, prefix="second")
    work(analytics)
    erasure.refresh_from_db()
    assert (erasure.state, erasure.messages, erasure.through) == ("succeeded", told.messages, 9)
    assert previewed(analytics, stream, key=ANN).messages == 4


def test_no_more_is_told_and_taken_than_up_to_an_offset(analytics: Analytics, here: Published) -> None:
    stream = made(here, "a")
    publish(here, stream, 3, prefix="first")
    due(analytics)
    publish(here, stream, 2, prefix="second")
    told = previewed(analytics, stream, key=ANN, up_to=10)
    assert (told.messages, told.up_to, told.in_stream) == (3, 10, 3)
    assert previewed(analytics, stream, key=ANN).messages == 5
    assert erased(analytics, stream, key=ANN, up_to=10).messages == 3
    assert previewed(analytics, stream, key=ANN, up_to=10).messages == 0
    assert previewed(analytics, stream, key=ANN).messages == 2


def test_of_a_stream_that_is_copied_no_more(analytics: Analytics, here: Published) -> None:
    stream = made(here, "a")
    publish(here, stream, 3, prefix="first")
    due(analytics)
    here.stream("a", archive=False)
    Stream.objects.update(archive=False)
    stream.refresh_from_db()
    publish(here, stream, 2, prefix="second")
    told = previewed(analytics, stream, key=ANN)
    assert (told.messages, told.in_stream) == (3, 5)
    assert erased(analytics, stream, key=ANN).messages == 3
