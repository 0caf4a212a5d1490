"""A standing cast: an owner, a stranger in another workspace, and tokens that lack a scope."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client

from streams import bearer
from streams.access import SYSTEM
from streams.models import Workspace
from streams.services.tokens import token_create


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


def code(answer: HttpResponse) -> str:
    """The refusal's code; its shape is checked on the way."""
    body = json.loads(answer.content)
    assert list(body) == ["error"], body
    assert list(body["error"]) == ["code", "message", "details"], body
    assert body["error"]["message"].endswith((".", "]", "!")), body
    return str(body["error"]["code"])


def fields(answer: HttpResponse) -> list[str]:
    """The fields that a refusal names."""
    return sorted(json.loads(answer.content)["error"]["details"]["fields"])


@pytest.fixture(scope="session", autouse=True)
def static_folder() -> None:
    """WhiteNoise warns when the folder of collected files is missing."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.fixture
def ruler(transactional_db: None) -> Api:
    """An admin of the default workspace."""
    workspace, _ = Workspace.objects.get_or_create(name="default")
    return caller(workspace)


@pytest.fixture
def owner(transactional_db: None, unique: str) -> Api:
    """Everything, in a workspace of the test's own."""
    return caller(Workspace.objects.create(name=unique))


@pytest.fixture
def stranger(transactional_db: None, unique: str) -> Api:
    """Everything, in another workspace."""
    return caller(Workspace.objects.create(name=f"{unique}-other"))
