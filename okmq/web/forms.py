"""What is read of a body outside of the API: a form (a POST) of somebody who is logged in, and what is small."""

from importlib import import_module

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import Error
from django.http import HttpRequest, parse_cookie

from okmq.web.held import Body
from streams.api.parsing import UNREAD

LARGEST_BYTES: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE


class Form(Body):
    """The body of a request for a page; what is too large for anybody is left for Django to refuse, in a page."""

    _is_known = False

    async def is_taken(self, size: int) -> bool:
        if self._request.method != "POST":
            return False
        if size <= LARGEST_BYTES and (self._is_known or await self._is_somebodys()):
            self._is_known = True
            return True
        self._scope[UNREAD] = True
        return False

    async def _is_somebodys(self) -> bool:
        cookies = self._request.headers.get(b"cookie", b"").decode("latin-1")
        return bool(await database_sync_to_async(_is_logged_in)(cookies))


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
