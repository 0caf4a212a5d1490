"""Questions that take counting by key, from the process that is asked to the one that counts, by channels.

A channel is written nowhere: a question costs no disk, and whether anybody listens is in the answer to it.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from redis.exceptions import RedisError

from streams.log import keys
from streams.log.censuses import Censuses
from streams.log.client import Log
from streams.log.errors import LogError
from streams.log.named import named
from streams.log.preview import ALWAYS, EMPTY, WITHIN_S, Preview, Purge, Supposed, preview

PATIENCE_S = 1.0
"""How much longer than it may take an answer is waited for."""

ANSWERED_WITHIN_S = 1.0
"""A question that may take longer is asked again and again, so that others are answered in between."""


class Question(msgspec.Struct, frozen=True):
    """As ``preview`` is asked; ``told`` is the channel for the answer, ``until`` when nobody waits for it any more."""

    told: str
    until: float
    stream_id: str
    limits: dict[str, Any]
    groups: dict[str, list[str]]
    within_s: float
    begins: dict[str, int] = {}
    purge: Purge | None = None
    supposed: Supposed | None = None
    among: list[int] = []


def ask(
    log: Log,
    stream_id: str,
    limits: Mapping[str, Any],
    groups: Mapping[str, Sequence[str]],
    *,
    begins: Mapping[str, int] = EMPTY,
    purge: Purge | None = None,
    supposed: Supposed | None = None,
    among: Sequence[int] = (),
    within_s: float,
) -> Preview:
    """What would go if these limits held, or with this purge.

    It is told by the process that counts or, where that does not answer, by this one.

    Raises:
        LogError: as of ``preview``.
    """
    until_s = time.monotonic() + within_s
    is_counted = limits.get("max_messages_per_key") is not None or (purge is not None and purge.keys)
    if not is_counted and not any(groups.values()) and not begins:
        return log.run(
            preview(stream_id, limits, groups, purge=purge, supposed=supposed, among=among, within_s=within_s)
        )
    while True:
        began_s = time.monotonic()
        left_s = until_s - began_s
        asked_s = min(ANSWERED_WITHIN_S, left_s)
        told = _answer(
            log,
            stream_id,
            limits,
            groups,
            begins=begins,
            purge=purge,
            supposed=supposed,
            among=among,
            within_s=asked_s,
        )
        if told is None:
            within_s = max(0.0, left_s)
            return log.run(
                preview(
                    stream_id,
                    limits,
                    groups,
                    begins=begins,
                    purge=purge,
                    supposed=supposed,
                    among=among,
                    within_s=within_s,
                    always=ALWAYS,
                )
            )
        answered_s = time.monotonic()
        # Of millions each answer takes as long as the last one: one that would come too late is not asked for.
        if told.is_complete or answered_s + min(answered_s - began_s, WITHIN_S) >= until_s:
            return told


def _answer(
    log: Log,
    stream_id: str,
    limits: Mapping[str, Any],
    groups: Mapping[str, Sequence[str]],
    *,
    begins: Mapping[str, int] = EMPTY,
    purge: Purge | None = None,
    supposed: Supposed | None = None,
    among: Sequence[int] = (),
    within_s: float,
) -> Preview | None:
    question = Question(
        told=f"{keys.CENSUS_TOLD}{secrets.token_hex(8)}",
        until=time.time() + within_s + PATIENCE_S,
        stream_id=stream_id,
        limits=dict(limits),
        groups={name: list(patterns) for name, patterns in groups.items()},
        within_s=within_s,
        begins=dict(begins),
        purge=purge,
        supposed=supposed,
        among=list(among),
    )
    try:
        with log.client.pubsub() as channel:
            channel.subscribe(question.told)
            channel.get_message(timeout=PATIENCE_S)
            if not log.client.execute_command("PUBLISH", keys.CENSUS_ASKED, msgspec.json.encode(question)):
                return None
            told = channel.get_message(timeout=within_s + PATIENCE_S)
    except RedisError as error:
        raise named(error) from None
    if told is None or not told["data"]:
        return None
    return msgspec.json.decode(told["data"], type=Preview)


class Answers:
    """Answers the questions that come, one after the other."""

    def __init__(self, log: Log, censuses: Censuses) -> None:
        self._log, self._censuses = log, censuses
        self._channel = log.client.pubsub()
        try:
            self._channel.subscribe(keys.CENSUS_ASKED)
        except RedisError as error:
            raise named(error) from None

    def answer(self, *, wait_s: float) -> bool:
        """Wait for a question and answer it; false where none came.

        Raises:
            StoreUnavailable: the server does not answer.
        """
        try:
            found = self._channel.get_message(timeout=wait_s)
            if found is None or found["type"] != "message":
                return False
            question = msgspec.json.decode(found["data"], type=Question)
            if question.until > time.time():
                self._log.client.execute_command("PUBLISH", question.told, self._told(question))
        except RedisError as error:
            raise named(error) from None
        return True

    def close(self) -> None:
        """Listen no more."""
        self._channel.close()

    def _told(self, question: Question) -> bytes:
        """The answer, or nothing where it is refused: who asked then meets the reason itself."""
        try:
            told = self._log.run(
                preview(
                    question.stream_id,
                    question.limits,
                    question.groups,
                    begins=question.begins,
                    purge=question.purge,
                    supposed=question.supposed,
                    among=question.among,
                    held=self._censuses.of(question.stream_id),
                    # What is far behind is counted beside the questions, unless somebody waits for it.
                    within_s=question.within_s if question.within_s > WITHIN_S else 0.0,
                )
            )
        except LogError:
            return b""
        return msgspec.json.encode(told)
