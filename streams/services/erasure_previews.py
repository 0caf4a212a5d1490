"""What an erasure would take, told before it is asked for; nothing of it changes a message.

How many the history has is counted by Spark, as a query of SQL, which reads what is still to be copied into it, too, as
an erasure does. Its text is kept for a day, so it names a key by its SHA-256 alone. All else is read at once.
"""

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext as _

from streams import selectors, store
from streams.access import Caller, may_see
from streams.errors import refusal_of
from streams.log import config, dead_letters, read
from streams.log.errors import GroupNotFound, LogError, MessageNotFound
from streams.log.patterns import python_pattern
from streams.log.preview import Purge
from streams.models import Erasure, Query, QueryState, Replay, Stream
from streams.services.erasures import UNFINISHED, erasable
from streams.services.queries import query_queue

FRESH = timedelta(minutes=10)
"""How long a count is told again; what came since is counted beside it each time."""

TOLD = timedelta(minutes=1)
"""How long it is told why there is no count, before it is tried again."""

LETTERS_WITHIN_S = 1.0
"""How long dead letters are looked at, of all groups together."""


class PreviewState(models.TextChoices):
    """How far the count of the history is."""

    COUNTING = "counting"
    COUNTED = "counted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """What an erasure of one message or key would take now.

    Attributes:
        progress: of the count, 0 to 1.
        counted: how many the history has up to ``through``, those that are still to be copied included; None while
            that is not known.
        since: how many came into the stream above it, which would be copied first.
        up_to: the last offset that it means: the one that was asked for, or else the last that the stream had when all
            of this was counted.
        in_stream: how many stand in the stream, where an erasure leaves them.
        dead_letters: group → how many it keeps; groups without any are left out.
        waiting: erasures of the same that were asked for and are not done; they take what they mean of it.
        copies: replays that have published what they may have been of; copies are not reached.
        is_complete: whether all of the stream and of the dead letters was looked at; where not, there may be more.
        error: why there is no count.
    """

    stream: Stream
    offset: int | None
    key: str
    state: PreviewState
    progress: float
    counted: int | None
    since: int
    through: int
    up_to: int
    in_stream: int
    dead_letters: Mapping[str, int]
    waiting: Sequence[Erasure]
    copies: Sequence[Replay]
    is_complete: bool
    error: str

    @property
    def key_sha256(self) -> str:
        return digest_of(self.key)

    @property
    def messages(self) -> int | None:
        """How many would go from the history; None while that is not known."""
        return None if self.counted is None else self.counted + self.since

    @property
    def letters(self) -> int:
        """How many dead letters would go."""
        return sum(self.dead_letters.values())


def digest_of(key: str) -> str:
    """What is told of a key instead of it; empty for none."""
    return hashlib.sha256(key.encode()).hexdigest() if key else ""


def erasure_preview(
    caller: Caller,
    *,
    stream: str,
    offset: int | None = None,
    key: str = "",
    up_to: int | None = None,
    anew: bool = False,
) -> ErasurePreview:
    """What an erasure of the message at an offset, or of all of a key, would take; the first call begins a count of the
    history, later ones tell how far it is and what came of it.

    Args:
        up_to: as of ``erasure_request``.
        anew: begin another count, whatever the last one told.

    Raises:
        Refusal: as ``erasure_request``, and ``rate_limited`` while too many queries wait.
    """
    found = erasable(caller, stream)
    try:
        position = store.log().run(read.position(found.stream_id))
        last = position.last
        through = (
            last if found.archive else store.log().run(config.archived_of([found.stream_id]))[found.stream_id]
        )
        head = _head(found, offset=offset, key=key, up_to=up_to)
        query = None if anew else _told_lately(found, head)
        if query is None:
            sql = f"{head}{through}"
            query = query_queue(caller, sql=sql, limit=1, streams=[found.name], counts_to=through)
        through = through if query.counts_to is None else query.counts_to
        reach = last if up_to is None else min(up_to, last)
        in_stream, since, all_seen = _in_stream(found, offset=offset, key=key, through=through, up_to=reach)
        # What a limit took since the count is copied to the history, and stands in the stream no more.
        all_seen = all_seen and (not found.archive or position.floor <= through + 1 or reach <= through)
        letters, all_read = _letters(found, offset=offset, key=key, up_to=reach)
    except LogError as error:
        raise refusal_of(error, stream=stream) from None
    state = _STATES.get(QueryState(query.state), PreviewState.FAILED)
    return ErasurePreview(
        stream=found,
        offset=offset,
        key=key,
        state=state,
        progress=query.progress,
        counted=json.loads(query.rows)[0][0] if state == PreviewState.COUNTED else None,
        since=since if found.archive else 0,
        through=through,
        up_to=reach,
        in_stream=in_stream,
        dead_letters=letters,
        waiting=_waiting(found, offset=offset, key=key),
        copies=[
            each for each in _copies(found, offset=offset, key=key, up_to=reach) if may_see(caller, each)
        ],
        is_complete=all_seen and all_read,
        error=(query.error or _("The count was cancelled.")) if state == PreviewState.FAILED else "",
    )


_STATES = {
    QueryState.QUEUED: PreviewState.COUNTING,
    QueryState.STARTING: PreviewState.COUNTING,
    QueryState.RUNNING: PreviewState.COUNTING,
    QueryState.SUCCEEDED: PreviewState.COUNTED,
}


def _head(stream: Stream, *, offset: int | None, key: str, up_to: int | None) -> str:
    """The count in SQL, up to the offset to which it goes; neither the stream's name nor a digest has a quote."""
    what = f"offset = {offset}" if offset is not None else f"sha2(key, 256) = '{digest_of(key)}'"
    if up_to is not None:
        what = f"{what} AND offset <= {up_to}"
    return (
        f"SELECT count(*) AS messages FROM messages WHERE stream = '{stream.name}' AND {what} AND offset <= "
    )


def _told_lately(stream: Stream, head: str) -> Query | None:
    """The newest count of the same, where it is still to be told: begun after this stream and its last erasure.

    Only one that a preview asked for: anybody may ask a query whose text is the same, narrowed to other streams.
    """
    ended = Erasure.objects.filter(stream_id=stream.stream_id).aggregate(at=models.Max("finished_at"))["at"]
    begun = Query.objects.filter(
        workspace=stream.workspace,
        counts_to__isnull=False,
        created_at__gte=max(stream.created_at, ended or stream.created_at),
    )
    # Not every database tells capitals from small letters here.
    alike = begun.filter(sql__startswith=head).order_by("-id").iterator()
    query = next((each for each in alike if each.sql == f"{head}{each.counts_to}"), None)
    if query is None or query.finished_at is None:
        return query
    kept = FRESH if query.state == QueryState.SUCCEEDED else TOLD
    return query if query.finished_at > timezone.now() - kept else None


def _in_stream(
    stream: Stream, *, offset: int | None, key: str, through: int, up_to: int
) -> tuple[int, int, bool]:
    """How many stand in the stream up to an offset, how many of them above another, and whether all was looked at."""
    if offset is not None:
        try:
            selectors.message_at(stream, offset)
        except MessageNotFound:
            return 0, 0, True
        return 1, int(offset > through), True
    every, below = (
        selectors.purge_preview(stream, Purge(keys=(key,), below=end)) for end in (up_to + 1, through + 1)
    )
    since = max(0, every.messages - below.messages)
    return every.messages, since, every.is_complete and below.is_complete


def _letters(stream: Stream, *, offset: int | None, key: str, up_to: int) -> tuple[dict[str, int], bool]:
    """How many dead letters each group keeps up to an offset, and whether all were looked at."""
    found: dict[str, int] = {}
    is_complete, until_s = True, time.monotonic() + LETTERS_WITHIN_S
    for name in stream.groups.order_by("name").values_list("name", flat=True):
        wanted = dead_letters.kept(
            stream.stream_id, name, offset=offset, key=key, up_to=up_to, until_s=until_s
        )
        try:
            count, all_read = store.log().run(wanted)
        except GroupNotFound:  # deleted meanwhile
            continue
        is_complete = is_complete and all_read
        if count:
            found[name] = count
    return found, is_complete


def _waiting(stream: Stream, *, offset: int | None, key: str) -> list[Erasure]:
    """The erasures of the same that are not done, oldest first."""
    found = Erasure.objects.filter(stream_id=stream.stream_id, state__in=UNFINISHED).order_by("id")
    return list(found.filter(offset=offset, key_sha256=digest_of(key)))


def _copies(stream: Stream, *, offset: int | None, key: str, up_to: int) -> list[Replay]:
    """The replays that have published some of it, as far as their range and their key tell; newest first."""
    found = Replay.objects.filter(
        workspace=stream.workspace, source_id=stream.stream_id, group="", stored__gt=0
    )
    if offset is not None:
        return list(found.filter(first__lte=offset, last__gte=offset).order_by("-id"))
    of_range = found.filter(first__lte=up_to).order_by("-id")
    return [each for each in of_range if not each.key or re.fullmatch(python_pattern(each.key), key)]
