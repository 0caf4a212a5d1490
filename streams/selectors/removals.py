"""What was removed for a while and can come back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from streams import store
from streams.errors import refusal_of
from streams.log import removals
from streams.log.errors import LogError
from streams.log.removals import Aside
from streams.models import Stream, Token
from streams.selectors.times import moment


@dataclass(frozen=True, slots=True)
class RemovalView:
    """A removal that can be undone.

    Attributes:
        kind: of its event, ``stream.purged`` or ``message.deleted``.
        actor: who removed it.
        asked: what a purge was told: ``offset``, ``keep``, ``key``; empty for everything, and for single messages.
        until: when it goes for good.
    """

    number: int
    kind: str
    messages: int
    bytes: int
    first_offset: int
    actor: str
    until: datetime
    asked: Mapping[str, str]


def removals_of(stream: Stream) -> list[RemovalView]:
    """What can be undone of a stream, oldest first."""
    found = _held(stream)
    token_ids = {each.facts["token_id"] for each in found if "token_id" in each.facts}
    names = dict(Token.objects.filter(pk__in=token_ids).values_list("pk", "name"))
    return [_view(each, names) for each in found]


def finals_of(stream: Stream, *, kept_from: int) -> list[int]:
    """The removals of a stream of which nothing below an offset could be undone any more, oldest first."""
    return [each.number for each in _held(stream) if each.first < kept_from]


def _held(stream: Stream) -> list[Aside]:
    try:
        return store.log().run(removals.removals(stream.stream_id))
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None


def _view(aside: Aside, names: dict[int, str]) -> RemovalView:
    until = moment(aside.until_ms)
    assert until is not None
    token_id = aside.facts.get("token_id")
    actor = aside.facts.get("actor") or f"token {names.get(token_id or 0, f'{token_id}, revoked')}"
    return RemovalView(
        number=aside.number,
        kind=aside.facts["kind"],
        messages=aside.messages,
        bytes=aside.bytes,
        first_offset=aside.first,
        actor=actor,
        until=until,
        asked=aside.facts.get("asked", {}),
    )
