"""A standing cast: an owner, a stranger in another workspace, and tokens that lack a scope."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import setup_databases, teardown_databases
from pytest_django.plugin import DjangoDbBlocker

from streams import bearer
from streams.access import SYSTEM
from streams.api import sql
from streams.models import AlertRule, Workspace
from streams.services.tokens import token_create
from tests.streams.test_webhooks import Receiver, receiver  # noqa: F401


@dataclass
class Api:
    """Calls the API with a token; bodies are JSON unless they are bytes."""

    secret: str
    workspace: Workspace
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        content_type = headers.pop("content_type", "application/json")
        if self.secret and "authorization" not in headers:
            headers["authorization"] = f"Bearer {self.secret}"
        answer = self.client.generic(
            method, f"/api/v1/{path}", data, content_type=content_type, headers=headers
        )
        assert answer.status_code < 500, answer.content
        return answer

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("PATCH", path, body, **headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self.call("DELETE", path, **headers)


def caller(
    workspace: Workspace, *, scopes: Sequence[str] = bearer.SCOPES, streams: Sequence[str] = ()
) -> Api:
    """A client with a token of its own."""
    _, secret = token_create(workspace, name="test", scopes=scopes, streams=streams, actor=SYSTEM)
    return Api(secret, workspace)


def code(answer: Any) -> str:
    """The refusal's code; its shape is checked on the way."""
    body = json.loads(answer.content)
    assert list(body) == ["error"], body
    assert list(body["error"]) == ["code", "message", "details"], body
    assert body["error"]["message"].endswith((".", "]", "!")), body
    return str(body["error"]["code"])


def fields(answer: Any) -> list[str]:
    """The fields that a refusal names."""
    return sorted(json.loads(answer.content)["error"]["details"]["fields"])


@pytest.fixture(scope="session", autouse=True)
def static_folder() -> None:
    """WhiteNoise warns when the folder of collected files is missing."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.fixture(scope="package")
def made_database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """pytest-django makes the database only for tests with its own marks, and there may be none in this run."""
    with django_db_blocker.unblock():
        is_there = bool(connection.introspection.table_names())
        made = [] if is_there else setup_databases(verbosity=0, interactive=False, aliases={"default": None})
        yield
        teardown_databases(made, verbosity=0)


@pytest.fixture(scope="module")
def database(made_database: None) -> Iterator[None]:
    """The database as requests find it: everything is committed. Tests keep apart by workspaces of their own.

    Emptied after each file: who rules all workspaces sees, and waits for, what every test before left there. No id
    comes again, for the log still has what was under it.
    """
    yield
    call_command("flush", interactive=False, verbosity=0, reset_sequences=False)


@pytest.fixture
def ruler(database: None) -> Api:
    """An admin of the default workspace."""
    workspace, _ = Workspace.objects.get_or_create(name="default")
    return caller(workspace)


@pytest.fixture
def owner(database: None, unique: str) -> Api:
    """Everything, in a workspace of the test's own."""
    return caller(Workspace.objects.create(name=unique))


@pytest.fixture
def stranger(database: None, unique: str) -> Api:
    """Everything, in another workspace."""
    return caller(Workspace.objects.create(name=f"{unique}-other"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing answers queries here: a question is told at once where to ask for its answer."""
    monkeypatch.setattr(sql, "WAIT_S", 0.0)


@pytest.fixture
def alone(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """No alert of another test waits to be told; receivers are on this machine."""
    AlertRule.objects.all().delete()
    monkeypatch.setattr(settings, "ENV", dataclasses.replace(settings.ENV, webhook_private=True))


@pytest.fixture
def hook(receiver: Receiver) -> Receiver:  # noqa: F811
    """A receiver of webhooks."""
    return receiver
