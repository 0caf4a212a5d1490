"""Tokens: made with a secret that is shown once, and revoked for every process within its cache time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from streams import bearer, moments, store
from streams.access import Actor
from streams.log import config
from streams.models import Token, Workspace
from streams.services.events import event_record


def token_create(
    workspace: Workspace,
    *,
    name: str,
    scopes: Sequence[str],
    actor: Actor,
    streams: Sequence[str] = (),
    expires_at: datetime | None = None,
    secret: str | None = None,
) -> tuple[Token, str]:
    """Make a token.

    Args:
        secret: the secret to use, from the environment; a new one is made when None.

    Returns:
        The row, and the secret, which is kept nowhere.

    Raises:
        StoreUnavailable: there is no such token.
    """
    store.demand()
    return _token_create(
        workspace,
        name=name,
        scopes=scopes,
        streams=streams,
        expires_at=expires_at,
        secret=secret or bearer.make(),
        actor=actor,
    )


@transaction.atomic
def _token_create(
    workspace: Workspace,
    *,
    name: str,
    scopes: Sequence[str],
    streams: Sequence[str],
    expires_at: datetime | None,
    secret: str,
    actor: Actor,
) -> tuple[Token, str]:
    token = Token.objects.create(
        workspace=workspace,
        name=name,
        prefix=secret[: bearer.SHOWN_PREFIX_LENGTH] if len(secret) >= 24 else secret[:4],
        digest=bearer.digest(secret),
        scopes=[scope for scope in bearer.SCOPES if scope in scopes],
        streams=list(streams),
        expires_at=expires_at,
    )
    event_record(
        workspace,
        kind="token.created",
        actor=actor,
        after=_told(token),
        summary=f"Token {name} ({token.prefix}…) was created.",
    )
    # Before the commit: where the log cannot be told there is no token, rather than one in the list whose secret nobody
    # was told. Should the commit fail, the log knows the digest of a secret that nobody has.
    token_publish(token)
    return token, secret


def token_revoke(token: Token, *, actor: Actor) -> None:
    """Revoke a token; requests with it are refused within 2 seconds on every process.

    Raises:
        StoreUnavailable: it is there as before, or refused already, and can be revoked later.
    """
    store.demand()
    _token_revoke(token, actor=actor)


@transaction.atomic
def _token_revoke(token: Token, *, actor: Actor) -> None:
    digest = token.digest
    token.delete()
    event_record(
        token.workspace,
        kind="token.revoked",
        actor=actor,
        before=_told(token),
        summary=f"Token {token.name} ({token.prefix}…) was revoked.",
    )
    # Before the commit: a token that is gone from every list must not let anybody in while the log cannot be told.
    # And after it: somebody may have told the log of all tokens in between.
    store.log().run(config.token_remove(digest))
    transaction.on_commit(lambda: store.log().run(config.token_remove(digest)))


def _told(token: Token) -> dict[str, Any]:
    """A token as an event keeps it: names may be those of others, too, the begin of the secret is not."""
    return {"name": token.name, "prefix": token.prefix, "scopes": token.scopes, "streams": token.streams}


def token_publish(token: Token) -> None:
    """Let the data plane know the token."""
    store.log().run(config.token_publish(token.digest, grant_of(token)))


def tokens_of_workspace_publish(workspace: Workspace) -> None:
    """Let the data plane know all tokens of a workspace again."""
    tokens = Token.objects.select_related("workspace").filter(workspace=workspace)
    store.log().run(config.tokens_publish({token.digest: grant_of(token) for token in tokens}))


def grant_of(token: Token) -> config.TokenGrant:
    """What the token allows, as the data plane reads it."""
    return config.TokenGrant(
        id=token.pk,
        workspace=token.workspace.name,
        workspace_id=token.workspace_id,
        scopes=tuple(token.scopes),
        streams=tuple(token.streams),
        expires_ms=None if token.expires_at is None else moments.unix_ms(token.expires_at),
        rate_limit=token.workspace.rate_limit,
        rate_burst=token.workspace.rate_burst,
    )
