"""What the log says of the history is held against what that has."""

import pytest

from streams import store
from streams.log import config, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import RollupPosition, Stream
from streams.services.fsck_history import history_findings, history_mend

pytestmark = pytest.mark.django_db(transaction=True)


def of(stream: Stream, ends: dict[str, int]) -> list[str]:
    return [each.sentence for each in history_findings(ends) if each.stream_id == stream.stream_id]


def test_messages_that_the_history_lacks_wait_for_it_again(stream: Stream) -> None:
    log, stream_id = store.log(), stream.stream_id
    log.run(append(stream_id, [NewMessage(id=str(n), body=b"1") for n in range(10)]))
    log.run(config.archived_set(stream_id, 8))
    assert of(stream, {stream_id: 8}) == []
    assert of(stream, {stream_id: 5}) == ["8 is said to be archived, and the history ends at 5, without 6"]
    history_mend(history_findings({stream_id: 5}), {stream_id: 5})
    assert log.run(config.archived_of([stream_id])) == {stream_id: 5}
    assert of(stream, {stream_id: 5}) == []


def test_what_is_not_there_any_more_the_history_need_not_have(stream: Stream) -> None:
    log, stream_id = store.log(), stream.stream_id
    log.run(append(stream_id, [NewMessage(id=str(n), body=b"1") for n in range(10)]))
    log.run(config.archived_set(stream_id, 10))
    log.run(trim.purge(stream_id))
    assert of(stream, {}) == []


def test_offsets_that_nobody_gave_and_figures_of_nothing_are_told(stream: Stream) -> None:
    RollupPosition.objects.create(stream_id=stream.stream_id, offset=30)
    assert of(stream, {stream.stream_id: 20}) == [
        "the history has 20, and 0 is the last that was given",
        "the figures of the past count up to 30, and the history ends at 20",
    ]
