"""Whoever is not logged in sends no large form: it is neither read nor kept, and answered at once.

Django reads a body whole before it asks who sent it, and a form may be of 33 MiB. Here its length, as it is told or as
it comes, is looked at first; above what a login needs, the session is. What a stranger still sends is taken and
dropped, as a browser reads no answer before it has sent everything.
"""

from collections.abc import MutableMapping
from importlib import import_module
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import Error
from django.http import HttpRequest, parse_cookie

from dashboard.views.unread import UNREAD
from streams.dataplane.request import Receive, Scope
from streams.exchange import header

MOST_BYTES = 64 * 1024
"""Of a form that anybody may send."""


class OfStrangers:
    """Wraps a ``receive``: a body of more than ``MOST_BYTES`` is of somebody who is logged in, or empty.

    Args:
        scope: of the request; it has ``UNREAD`` where the body is left out.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope, self._receive = scope, receive
        told = header(scope["headers"], b"content-length")
        self._bytes = int(told[:20]) if told.isdigit() else 0
        self._come = 0
        self._is_known = self._has_ended = False

    async def __call__(self) -> MutableMapping[str, Any]:
        if await self._may_send():
            message = await self._receive()
            self._come += len(message.get("body", b""))
            if await self._may_send():
                return message
        if not self._has_ended:
            self._has_ended = True
            return {"type": "http.request", "body": b"", "more_body": False}
        while (message := await self._receive())["type"] == "http.request":
            pass
        return message

    async def _may_send(self) -> bool:
        if UNREAD in self._scope:
            return False
        if not self._is_known and max(self._bytes, self._come) > MOST_BYTES:
            cookies = header(self._scope["headers"], b"cookie").decode("latin-1")
            self._is_known = await database_sync_to_async(_is_logged_in)(cookies)
            if not self._is_known:
                self._scope[UNREAD] = True
                return False
        return True


def _is_logged_in(cookies: str) -> bool:
    """Whether a session is somebody's; not where the database cannot say, which the page will, too."""
    request = HttpRequest()
    request.COOKIES = parse_cookie(cookies)
    sessions = import_module(settings.SESSION_ENGINE)
    request.session = sessions.SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    try:
        return bool(get_user(request).is_authenticated)
    except Error:
        return False
