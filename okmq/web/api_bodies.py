"""What is read of a body of the API: that of who has a token, at a path that there is, and what is small."""

from channels.db import database_sync_to_async
from django.db import Error

from okmq.web.held import Body, Held
from streams.api.authentication import token_of
from streams.api.parsing import UNREAD
from streams.dataplane.request import BODY_LIMIT_BYTES, Request, Scope, too_large
from streams.errors import Refusal


class ApiBody(Body):
    """The body of a request to the control plane; at a path that leads nowhere (``is_there``) nobody reads it."""

    def __init__(self, scope: Scope, request: Request, held: Held, *, is_there: bool) -> None:
        super().__init__(scope, request, held)
        self._is_there = is_there
        self._is_known = False

    async def is_taken(self, size: int) -> bool:
        self._is_known = self._is_known or (self._is_there and await self._is_somebodys())
        if not self._is_known:
            self._scope[UNREAD] = True
            return False
        if size > BODY_LIMIT_BYTES:
            raise too_large()
        return True

    async def _is_somebodys(self) -> bool:
        authorization = self._request.authorization.decode("latin-1")
        return bool(authorization and await database_sync_to_async(_is_a_tokens)(authorization))


def _is_a_tokens(authorization: str) -> bool:
    """Whether a token lets its sender in; not where the database cannot say, which the view will, too."""
    try:
        token_of(authorization)
    except (Refusal, Error):
        return False
    return True
