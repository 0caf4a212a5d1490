"""Pages that are open in browsers: the groups of sockets that they are in, and what these are told after a commit."""

import asyncio
from collections.abc import Iterable, Mapping
from hashlib import sha256

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from streams import store
from streams.log import listeners


def stream_group(stream_id: str) -> str:
    """The group of the pages that show one stream; ids are 12 characters from a-z and 2-7."""
    return f"live.stream.{stream_id}"


def consumers_group(stream_id: str, name: str) -> str:
    """The group of the pages that show one consumer group."""
    return f"live.consumers.{stream_id}.{name}"


def absent_group(workspace_id: int, stream: str, name: str = "") -> str:
    """The group of the pages that show a stream, or a consumer group of one, that is not there."""
    absent = sha256(f"{stream}/{name}".encode("utf-8", "replace")).hexdigest()
    return f"live.absent.{workspace_id}.{absent[:32]}"


def session_group(session_key: str) -> str:
    """The group of the sockets of one login; the key itself is a secret and stays out of the store."""
    return f"live.session.{sha256(session_key.encode()).hexdigest()[:32]}"


def person_group(user_id: int) -> str:
    """The group of all sockets of a person."""
    return f"live.person.{user_id}"


def tell(groups: Mapping[str, str]) -> None:
    """Send groups of sockets a message type after the commit: ``live.end``, or ``live.again`` to come back anew.

    A store that is away tells nobody; a socket without its session or its person ends with the next page.
    """
    if groups:
        transaction.on_commit(lambda: async_to_sync(_send)(groups), robust=True)


def look_again(groups: Iterable[str]) -> None:
    """Have the pages of these groups look again after the commit: something that they show was made or deleted.

    A store that is away tells nobody; a page asks again when it notices that it missed something.
    """
    names = list(groups)

    async def send() -> None:
        await _send(dict.fromkeys(await heard(names), "live.look"))

    if names:
        transaction.on_commit(async_to_sync(send), robust=True)


async def heard(groups: Iterable[str]) -> set[str]:
    """Those of the groups that somebody has joined, in whichever process; one call for a thousand of them."""
    name_of = get_channel_layer()._get_group_channel_name  # the layer tells nobody who has joined a group
    group_of = {name_of(group): group for group in groups}
    channels = await asyncio.to_thread(store.log().run, listeners.heard(list(group_of)))
    return {group_of[channel] for channel in channels}


async def _send(groups: Mapping[str, str]) -> None:
    for group, kind in groups.items():
        await get_channel_layer().group_send(group, {"type": kind})
