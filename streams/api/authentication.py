"""Who is calling: a token in the ``Authorization`` header. Cookies mean nothing here, so nothing can be forged."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from django.db import OperationalError, connection
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from streams import bearer
from streams.access import Caller, caller_for_session, caller_for_token
from streams.errors import Refusal
from streams.models import Token

USE_NOTED_EVERY = timedelta(minutes=1)


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer <token>`` or the bare token; ``request.user`` is then a ``Caller``."""

    def authenticate(self, request: Request) -> tuple[Caller, Token]:
        """Raises Refusal ``unauthorized`` for a missing, unknown or expired token."""
        token = token_of(request.META.get("HTTP_AUTHORIZATION", ""))
        _note_use(token)
        return caller_for_token(token, address=address_of(request)), token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class TokenOrSession(TokenAuthentication):
    """For pages that only show: a logged-in person needs no token."""

    def authenticate(self, request: Request) -> tuple[Caller, Token | None]:  # type: ignore[override]
        user = getattr(request._request, "user", None)
        if "HTTP_AUTHORIZATION" not in request.META and user is not None and user.is_authenticated:
            session = request._request.session
            return caller_for_session(user, session, address=address_of(request)), None
        return super().authenticate(request)


def token_of(authorization: str) -> Token:
    """The token in an ``Authorization`` header.

    Raises:
        Refusal: ``unauthorized`` for a missing, unknown or expired one.
    """
    secret = bearer.from_header(authorization)
    if secret is None:
        raise Refusal("unauthorized", "Send a token: Authorization: Bearer <token>.")
    token = Token.objects.select_related("workspace").filter(digest=bearer.digest(secret)).first()
    if token is None:
        raise Refusal("unauthorized", "Unknown token.")
    if token.is_expired:
        raise Refusal("unauthorized", "This token has expired.")
    return token


def address_of(request: Request) -> str:
    """Where the request came from, as far as the server in front tells."""
    return str(request.META.get("REMOTE_ADDR") or "")[:64]


def _note_use(token: Token) -> None:
    """Once a minute at most: a write for every read would be dear. Nobody waits for it: a later use is noted, too."""
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > USE_NOTED_EVERY:
        with suppress(OperationalError), _at_once():
            Token.objects.filter(pk=token.pk).update(last_used_at=now)


@contextmanager
def _at_once() -> Iterator[None]:
    """Refuse to wait for another writer of SQLite; what reads only would fail when that one takes too long."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        (waits_ms,) = cursor.execute("PRAGMA busy_timeout").fetchone()
        cursor.execute("PRAGMA busy_timeout = 0")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {waits_ms:d}")
