"""Many messages from pasted lines or a file into a stream: batch by batch, up to the first line that is wrong."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from dashboard.publish.publishing import append_all, demand_key, demand_size
from streams.dataplane import slicing
from streams.dataplane.marked import Marked
from streams.dataplane.messages import read_publication
from streams.decoding import malformed, too_deep
from streams.errors import Refusal
from streams.log.append import BATCH_LIMIT
from streams.log.entries import NewMessage
from streams.models import Stream

BATCH_BYTES = 4 * 1024 * 1024
PLACE = ("offset", "timestamp")
"""What an export says of a message and a publisher cannot: left out, so that a file of one can be loaded."""

_BOM = b"\xef\xbb\xbf"
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


@dataclass(frozen=True, slots=True)
class Lines:
    """How lines are read.

    Attributes:
        begin: those before this one are passed over.
        as_bodies: a line is a body, whose id is the prefix and the line's number; else a whole message.
    """

    begin: int = 1
    as_bodies: bool = False
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """How far it came.

    Attributes:
        line: the next line; where ``wrong`` says why, the first that was not stored, and nothing after it was.
        stored, known: messages stored, and passed over since the stream knows their ids.
        first, last: offsets of what was stored, None while nothing was.
        is_unknown: whether what became of the lines from ``line`` on is not known: the store did not answer.
    """

    line: int = 1
    stored: int = 0
    known: int = 0
    first: int | None = None
    last: int | None = None
    wrong: str = ""
    is_unknown: bool = False


def publish_lines(stream: Stream, lines: Iterable[bytes], *, how: Lines, told: Told) -> Told:
    """Store a message a line, in batches that are stored whole or not at all; empty lines are passed over.

    Args:
        told: how far the lines before these came; the first of these is ``told.line``.

    Returns:
        How far it came, all together; it ends before the first line that is refused.
    """
    batch: list[NewMessage] = []
    begun, line, size = told.line, told.line - 1, 0
    for line, text in enumerate(lines, start=told.line):
        sent = (text.removeprefix(_BOM) if line == 1 else text).strip(b" \t\r\n")
        if not sent or line < how.begin:
            continue
        try:
            message = _read(stream, sent, line=line, how=how)
        except Refusal as refusal:
            told = _stored(stream, batch, told=replace(told, line=begun), following=line)
            return told if told.wrong else replace(told, wrong=_sentence(refusal))
        begun = begun if batch else line
        batch.append(message)
        size += len(sent)
        if len(batch) == BATCH_LIMIT or size >= BATCH_BYTES:
            told = _stored(stream, batch, told=replace(told, line=begun), following=line + 1)
            if told.wrong:
                return told
            batch, size = [], 0
    return _stored(stream, batch, told=replace(told, line=begun), following=line + 1)


def _stored(stream: Stream, batch: list[NewMessage], *, told: Told, following: int) -> Told:
    """How far it came once a batch was stored, which begins at ``told.line``, or refused as a whole."""
    if not batch:
        return replace(told, line=following)
    try:
        stood = append_all(stream, batch)
    except Refusal as refusal:
        return replace(told, wrong=_sentence(refusal), is_unknown=refusal.code == "store_unavailable")
    fresh = [each.offset for each in stood if not each.duplicate]
    return replace(
        told,
        line=following,
        stored=told.stored + len(fresh),
        known=told.known + len(stood) - len(fresh),
        first=told.first if told.first is not None or not fresh else fresh[0],
        last=fresh[-1] if fresh else told.last,
    )


def _read(stream: Stream, sent: bytes, *, line: int, how: Lines) -> NewMessage:
    """The message of a line, checked as a publisher's.

    Raises:
        Refusal: what the API would answer.
    """
    messages = read_publication(_publication(sent, line=line, how=how)).messages
    if len(messages) != 1:
        raise Refusal("validation_error", "Expected one message.")
    (message,) = messages
    demand_key(stream, message.key)
    demand_size(stream, len(message.body))
    return message


def _publication(sent: bytes, *, line: int, how: Lines) -> bytes:
    """A line as an array of one message."""
    marked = Marked(sent)
    if how.as_bodies:
        try:
            slicing.check(marked.data)
        except msgspec.MsgspecError as error:
            raise malformed(error) from None
        except RecursionError:
            raise too_deep() from None
        return b'[{"id":%b,"body":%b}]' % (msgspec.json.encode(f"{how.prefix}-{line}"), sent)
    try:
        members = _members(marked.data)
    except (msgspec.MsgspecError, RecursionError):
        return b"[%b]" % sent  # what is wrong with it is said where every publication is read
    if not any(name in members for name in PLACE):
        return b"[%b]" % sent
    kept = msgspec.json.encode([{name: members[name] for name in members if name not in PLACE}])
    return marked.restored(kept)


def _sentence(refusal: Refusal) -> str:
    """Why a line was refused; its place in a batch says nothing to who reads lines."""
    errors = refusal.details.get("errors")
    if not errors:
        return refusal.message
    return f"{errors[0]['field']}: {errors[0]['message']}" if errors[0]["field"] else errors[0]["message"]
