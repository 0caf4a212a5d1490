"""The first start, and every other: what must be there is made, and the log is told everything it must know."""

import contextlib
import secrets
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db import transaction

from streams import bearer, selectors, store
from streams.access import SYSTEM
from streams.log import config, damage, scripts
from streams.log.client import Reachable, one
from streams.log.errors import StoreUnavailable
from streams.models import (
    DEFAULT_WORKSPACE,
    Group,
    Membership,
    OneTimePassword,
    Role,
    Stream,
    Token,
    Workspace,
)
from streams.models.stream import Storage
from streams.services.events import event_record
from streams.services.group_repairs import groups_repair
from streams.services.groups import group_publish
from streams.services.offsets_reserved import Archived, memory_reserve
from streams.services.shared_repairs import shared_repair
from streams.services.stream_repairs import is_of_another_database, leftovers_remove
from streams.services.streams import internal_stream
from streams.services.streams_told import streams_publish
from streams.services.tokens import token_create, token_publish
from streams.services.upkeep import memory_fill

ADMIN_NAME = "admin"
METRICS_STREAM = selectors.METRICS_STREAM
METRICS_TTL_S = 7 * 3600


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was made now and must be shown once: secrets that nobody else knows, or None."""

    password: str | None
    token: str | None


class AnotherDatabase(Exception):
    """The log holds so many streams, and the database knows none of them."""

    def __init__(self, streams: int) -> None:
        held = "a stream" if streams == 1 else f"{streams} streams"
        super().__init__(f"The message store holds {held} of another database than this one")


def another_database_refuse() -> None:
    """Refuse a database that knows none of the streams that the log holds.

    To tell the log of it would take them away: their database's file was lost, or this is not the one that was meant.

    Raises:
        AnotherDatabase: so it is.
        StoreUnavailable: the log does not answer.
    """
    held = store.log().run(config.streams())
    if is_of_another_database(held):
        raise AnotherDatabase(len(held))


def installation_prepare(*, password: str | None, token: str | None) -> Prepared:
    """Make the default workspace, the user ``admin`` and an admin token where they are missing.

    Args:
        password, token: from the environment; a password given there is set also when the user exists, a token
            given there is made known also when others exist. None: made up once, at the first start.

    Returns:
        The secrets that were made up.
    """
    workspace, _ = Workspace.objects.get_or_create(name=DEFAULT_WORKSPACE)
    made = Prepared(_admin_user(workspace, password=password), _admin_token(workspace, secret=token))
    internal_stream(METRICS_STREAM, ttl=METRICS_TTL_S, archive=False, dedup_window=60)
    return made


def configuration_republish(*, archived: Archived = dict) -> tuple[int, int]:
    """Tell the log of every stream, group and token again; counters stay as they are.

    Streams in memory are left to the worker while their server does not answer: the others need not wait for it. Those
    on a node of a cluster that is away stay as that node has them. What the store had lost goes on above every offset
    that it gave (``streams.services.offsets_reserved``).

    Args:
        archived: as of ``offsets_reserved``.

    Returns:
        How many streams and tokens.

    Raises:
        AnotherDatabase: nothing was told.
    """
    another_database_refuse()
    shared_repair()
    store.log().run(scripts.older_forget())
    streams = list(Stream.objects.select_related("workspace"))
    there = set(store.log().run(one(Reachable([stream.stream_id for stream in streams]))))
    durable = [each for each in streams if each.storage == Storage.DURABLE and each.stream_id in there]
    memory_reserve(streams)
    with damage.left_to_fsck():
        streams_publish(durable, archived=archived)
    for group in Group.objects.select_related("stream").filter(stream__storage=Storage.DURABLE):
        if group.stream.stream_id in there:
            with damage.left_to_fsck():
                group_publish(group)
    groups_repair([stream.stream_id for stream in durable])
    if store.has_memory():
        with contextlib.suppress(StoreUnavailable):
            store.log().run(scripts.older_forget(memory=True))
            memory_fill(again=True)
    tokens = list(Token.objects.select_related("workspace"))
    for token in tokens:
        token_publish(token)
    held = store.log().run(config.streams())
    leftovers_remove(held, with_memory=False)
    return len(streams), len(tokens)


@transaction.atomic
def _admin_user(workspace: Workspace, *, password: str | None) -> str | None:
    users = get_user_model().objects
    admin = users.filter(username=ADMIN_NAME).first()
    made = None
    if admin is None:
        made = None if password else secrets.token_urlsafe(12)
        admin = users.create_superuser(username=ADMIN_NAME, password=password or made)
        event_record(
            workspace,
            kind="user.created",
            actor=SYSTEM,
            after={"name": ADMIN_NAME},
            summary=f"User {ADMIN_NAME} was created.",
        )
    elif password and not admin.check_password(password):
        admin.set_password(password)
        admin.save(update_fields=["password"])
        OneTimePassword.objects.filter(user=admin).delete()
    Membership.objects.get_or_create(user=admin, workspace=workspace, defaults={"role": Role.ADMIN})
    return made


def _admin_token(workspace: Workspace, *, secret: str | None) -> str | None:
    wanted = Token.objects.filter(digest=bearer.digest(secret)) if secret else Token.objects.all()
    if wanted.exists():
        return None
    _, made = token_create(workspace, name=ADMIN_NAME, scopes=bearer.SCOPES, actor=SYSTEM, secret=secret)
    return None if secret else made
