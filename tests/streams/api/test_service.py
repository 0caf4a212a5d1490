"""Probes: the process, and its stores."""

from pathlib import Path

import pytest
from django.test import Client

from streams import store
from streams.log.client import Log
from tests.streams.api.conftest import code


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/healthz", "/healthz/", "/readyz", "/readyz/"])
def test_a_probe_needs_no_token(path: str) -> None:
    answer = Client().get(path)
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


@pytest.mark.django_db
def test_a_store_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nobody = Log(f"unix://{tmp_path}/nobody.sock")
    monkeypatch.setattr(store, "log", lambda: nobody)
    answer = Client().get("/readyz")
    assert (answer.status_code, code(answer)) == (503, "store_unavailable")
    assert list(answer.json()["error"]["details"]["reasons"]) == ["log"]
    assert answer.headers["Retry-After"] == "1"
    assert Client().get("/healthz").status_code == 200


@pytest.mark.parametrize("method", ["POST", "TRACE", "OPTIONS", "DELETE"])
def test_a_probe_only_shows(method: str) -> None:
    for path in ("/healthz", "/readyz"):
        answer = Client(enforce_csrf_checks=True).generic(method, path)
        assert (answer.status_code, code(answer)) == (405, "method_not_allowed")
        assert answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("query", ["x=1", "x", "%ff", "&".join(f"p{n}=1" for n in range(2000))])
def test_a_probe_takes_no_parameters(query: str) -> None:
    for path in ("/healthz", "/readyz"):
        answer = Client().get(f"{path}?{query}")
        assert (answer.status_code, code(answer)) == (400, "validation_error")
