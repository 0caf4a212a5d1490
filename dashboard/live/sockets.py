"""The one socket of a page: it asks for topics and is told of them as they change.

    browser  {"type": "subscribe", "topics": ["overview", "stream:flights"]}   all that the page shows from now on
    server   {"topic": "stream:flights", "seq": 7, "event": {"kind": "stream_sampled", …}}

Each new topic is answered at once with how it stands, so that a page is right without waiting for a change.
``seq`` counts the events of a connection; a gap makes the browser ask again.
"""

import asyncio
import json
import logging
import random
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from dashboard.languages import language_of_socket
from dashboard.live import live_events, topics
from dashboard.live.together import snapshots_here
from dashboard.live.topics import Topic
from streams.access import Caller, caller_for_session
from streams.errors import Refusal
from streams.services.open_pages import person_group, session_group

MOST_FRAME_CHARACTERS = 64 * 1024
MALFORMED = 4400
NOT_LOGGED_IN = 4401
TRY_AGAIN = 1013
LOOK_WITHIN_S = 0.5
"""What a page shows may be deleted piece by piece, and many pages may show it: each looks once, not all at once."""

logger = logging.getLogger(__name__)


class LiveSocket(AsyncWebsocketConsumer):  # type: ignore[misc]
    """A logged-in person's page; sees its own workspace only."""

    caller: Caller
    is_closed = False

    async def connect(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.sequence = 0
        self.showing = asyncio.Lock()
        self.looking: asyncio.Task[None] | None = None
        self.is_to_look = False
        self.language = language_of_socket(self.scope)
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(code=NOT_LOGGED_IN)
            return
        session = self.scope.get("session")
        session_key = session.session_key if session is not None else None
        self.own_groups = [person_group(user.pk), *([session_group(session_key)] if session_key else [])]
        # Joined before it is asked what the person may: what changes after that is heard.
        for group in self.own_groups:
            await self.channel_layer.group_add(group, self.channel_name)
        try:
            self.caller = await database_sync_to_async(_caller)(user, session)
        except Refusal:
            await self.close(code=NOT_LOGGED_IN)
            return
        await self.accept()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Events need no database, so nobody looks after its connections: Channels would, in a thread, for each
        event of each browser.
        """
        if message["type"] == "live.event":
            await self.live_event(message)
        else:
            await super().dispatch(message)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        wanted = _topics_asked_for(text_data)
        if wanted is None:
            await self.close(code=MALFORMED)
            return
        await self._show(wanted)

    async def _show(self, wanted: list[str] | None = None) -> None:
        """Join the groups of these topics (None: those of now), leave the others, and tell how each stands."""
        if self.is_closed:
            return
        try:
            async with self.showing:
                await self._show_alone(list(self.topics) if wanted is None else wanted)
        except Exception as error:
            # The store or the database is away: the browser comes back by itself, and asks again.
            logger.warning("A page could not subscribe: %s", error)
            await self.close(code=TRY_AGAIN)

    async def _show_alone(self, wanted: list[str]) -> None:
        found = await database_sync_to_async(topics.resolve)(self.caller, wanted)
        layer = self.channel_layer
        for name in self.topics.keys() - found.keys():
            await layer.group_discard(self.topics.pop(name).group, self.channel_name)
        for name, topic in found.items():
            held = self.topics.get(name)
            if held is not None and held.group != topic.group:  # deleted and made again under its name
                await layer.group_discard(held.group, self.channel_name)
            self.topics[name] = topic
            # Joined before the snapshot: what changes in between arrives after it, not never.
            await layer.group_add(topic.group, self.channel_name)
        told = await snapshots_here().of(self.caller.workspace.pk, found.values())
        unsure = topics.unsure(found.values(), told={topic.name for topic, _ in told if not topic.is_absent})
        again = await database_sync_to_async(topics.resolve)(self.caller, unsure) if unsure else {}
        if any(topic.group != found[name].group for name, topic in again.items()):
            await self._show_alone(wanted)  # made or deleted before its group was joined
            return
        for topic, event in told:
            await self._tell(topic.name, live_events.wire(event))

    async def disconnect(self, code: int) -> None:
        if (looking := getattr(self, "looking", None)) is not None:
            looking.cancel()
        for topic in getattr(self, "topics", {}).values():
            await self.channel_layer.group_discard(topic.group, self.channel_name)
        for group in getattr(self, "own_groups", []):
            await self.channel_layer.group_discard(group, self.channel_name)

    async def live_end(self, message: dict[str, Any]) -> None:
        """The person has logged out, or may not be here any more."""
        await self.close(code=NOT_LOGGED_IN)

    async def live_again(self, message: dict[str, Any]) -> None:
        """What the person may has changed: the browser comes back, and is asked again who it is."""
        await self.close(code=TRY_AGAIN)

    async def live_look(self, message: dict[str, Any]) -> None:
        """Something that this page shows was made or deleted."""
        self.is_to_look = True
        if self.looking is None or self.looking.done():
            self.looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while self.is_to_look:
            await asyncio.sleep(random.uniform(0.1, LOOK_WITHIN_S))
            self.is_to_look = False
            await self._show()

    async def live_event(self, message: dict[str, Any]) -> None:
        """An event of a group that this socket joined; of one that it has left since, nothing is told."""
        topic = self.topics.get(message["topic"])
        if topic is not None and topic.group == message["group"]:
            await self._tell(message["topic"], message["event"])

    async def close(self, code: int | None = None, reason: str | None = None) -> None:
        """End the socket, once: what still comes for it until the browser has gone is not answered."""
        if not self.is_closed:
            self.is_closed = True
            await super().close(code=code, reason=reason)

    async def _tell(self, topic: str, event: dict[str, Any]) -> None:
        if self.is_closed:
            return
        self.sequence += 1
        told = live_events.in_language(event, self.language)
        await self.send(text_data=json.dumps({"topic": topic, "seq": self.sequence, "event": told}))


def _caller(user: Any, session: Any) -> Caller:
    return caller_for_session(user, {} if session is None else session)


def _topics_asked_for(text: str | None) -> list[str] | None:
    """The topics of a subscription; None where it is not one."""
    if text is None or len(text) > MOST_FRAME_CHARACTERS:
        return None
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(frame, dict) or frame.get("type") != "subscribe":
        return None
    names = frame.get("topics")
    if not isinstance(names, list) or len(names) > topics.MOST_TOPICS:
        return None
    return names if all(isinstance(name, str) for name in names) else None
