"""The standing cast: owner (administrator), viewer of the same workspace, stranger of another, nobody."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client

from streams import store
from streams.access import IN_WORKSPACE, SYSTEM, Caller
from streams.log import keys, stats
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import DEFAULT_WORKSPACE, Membership, Role, Stream, Workspace
from streams.services.streams import stream_create

MakeStream = Callable[..., Stream]


@pytest.fixture(scope="session", autouse=True)
def _static_root() -> None:
    """The folder of collected files, which WhiteNoise wants to see; in tests the finders serve them."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.fixture(autouse=True)
def sampled() -> Iterator[None]:
    """A worker that samples, as far as pages can tell, for the next minute."""
    sampled_ago(ms=-60_000)
    yield
    store.log().client.delete(keys.SAMPLED, keys.SILENCES, keys.DAMAGED)


def sees_all(workspace: Workspace) -> Caller:
    """Somebody who may read everything in a workspace."""
    return Caller(workspace, frozenset({"read"}), SYSTEM)


def silence(*, since_s: float, until_s: float) -> None:
    """Nobody sampled between these moments (unix seconds)."""
    since_ms, until_ms = int(since_s * 1000), int(until_s * 1000)
    store.log().client.zadd(keys.SILENCES, {f"{since_ms} {until_ms}": until_ms})


def sampled_ago(*, ms: int) -> None:
    """The worker has sampled so long ago for the last time."""
    store.log().client.set(keys.SAMPLED, int(time.time() * 1000) - ms)


def person(name: str, *, workspace: Workspace, role: str) -> Client:
    user = get_user_model().objects.create_user(username=name, password="correct-horse-battery")
    Membership.objects.create(user=user, workspace=workspace, role=role)
    client = Client()
    client.force_login(user)
    session = client.session
    session[IN_WORKSPACE] = workspace.name  # as a login leaves it
    session.save()
    return client


@pytest.fixture
def workspace(transactional_db: None) -> Workspace:
    return Workspace.objects.get_or_create(name=DEFAULT_WORKSPACE)[0]


@pytest.fixture
def elsewhere(transactional_db: None) -> Workspace:
    return Workspace.objects.create(name="elsewhere")


@pytest.fixture
def owner(workspace: Workspace) -> Client:
    return person("owner", workspace=workspace, role=Role.ADMIN)


@pytest.fixture
def viewer(workspace: Workspace) -> Client:
    return person("viewer", workspace=workspace, role=Role.VIEWER)


@pytest.fixture
def observer(workspace: Workspace) -> Client:
    return person("observer", workspace=workspace, role=Role.OBSERVER)


@pytest.fixture
def stranger(elsewhere: Workspace) -> Client:
    return person("stranger", workspace=elsewhere, role=Role.ADMIN)


@pytest.fixture
def nobody(transactional_db: None) -> Client:
    return Client()


@pytest.fixture
def make_stream(workspace: Workspace) -> MakeStream:
    """``make_stream("orders", bodies=[b"1"], ttl=60)``: a stream of the default workspace with messages."""

    def make(
        name: str, *, bodies: list[bytes] | None = None, within: Workspace | None = None, **chosen: Any
    ) -> Stream:
        stream, _ = stream_create(within or workspace, name=name, settings=chosen, actor=SYSTEM)
        messages = [
            NewMessage(id=f"m{number}", body=body) for number, body in enumerate(bodies or [], start=1)
        ]
        if messages:
            store.log().run(append(stream.stream_id, messages))
            store.log().run(stats.touch([stream.stream_id]))
        return stream

    return make
