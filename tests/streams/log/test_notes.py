"""Notes in the store: a worker of the version before reads what hosts of this one leave."""

import json
from dataclasses import replace
from typing import Any

import pytest

from streams.log import notes
from streams.log.client import Script
from streams.log.notes import Note

KNOWN_BEFORE = {
    *("kind", "workspace_id", "stream_id", "stream", "token_id", "address", "group", "messages", "bytes"),
    "after",
}
NOTE = Note(
    kind="message.deleted",
    workspace_id=1,
    stream_id="abcdefghijkl",
    stream="s",
    token_id=1,
    address="::1",
    after={"count": 1},
)


def written(note: Note) -> Any:
    command = next(notes.put(note))
    assert isinstance(command, Script)
    return command.args[0]


def taken(note: str) -> Note:
    taking = notes.take()
    next(taking)
    with pytest.raises(StopIteration) as ended:
        taking.send([(b"1-0", [b"note", note.encode()])])
    ((_, found),) = ended.value.value
    assert isinstance(found, Note)
    return found


@pytest.mark.parametrize("note", [NOTE, replace(NOTE, deed="d"), replace(NOTE, deed="d", actor="ann")])
def test_a_note_has_no_field_that_the_version_before_does_not_know(note: Note) -> None:
    assert set(json.loads(written(note))) <= KNOWN_BEFORE
    assert taken(written(note)) == note


def test_a_note_with_fields_of_its_own_is_read_as_well() -> None:
    assert taken(json.dumps({**json.loads(written(NOTE)), "deed": "d"})) == replace(NOTE, deed="d")
