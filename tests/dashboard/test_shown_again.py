"""A form that a browser is shown again is a page like others: its console stays empty. Programs get the status."""

from typing import Any

import pytest
from django.test import Client

from tests.dashboard.conftest import MakeStream

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
RETENTION = "/streams/orders/retention/"
WRONG = [
    ("/streams/orders/settings/", {"dedup_window": "soon"}, 422),
    (RETENTION, {"discard": "old", "max_messages": "1"}, 409),
    (RETENTION, {"discard": "old", "ttl": "soon"}, 422),
    ("/streams/orders/delete/", {"confirm": "order"}, 422),
    ("/streams/_new/", {"name": ""}, 422),
    ("/streams/orders/publish/", {"id": "a", "body": "{"}, 422),
    ("/streams/orders/publish/many/", {"lines": "{", "each": "body"}, 422),
]


@pytest.mark.parametrize(("path", "form", "status"), WRONG, ids=str)
def test_a_form_that_is_wrong_is_a_page_to_a_browser_and_a_status_to_programs(
    owner: Client, make_stream: MakeStream, path: str, form: dict[str, str], status: int
) -> None:
    make_stream("orders", bodies=[b"1"] * 3)
    for accept in ("*/*", "application/json, text/html"):
        assert owner.post(path, form, headers={"Accept": accept}).status_code == status
    told = owner.post(path, form)
    answer = owner.post(path, form, headers=BROWSER)
    assert (told.status_code, answer.status_code, answer.reason_phrase) == (status, 200, "OK")
    assert "Accept" in answer["Vary"]
    signs = (b"notice bad", b"notice warn", b"invalid-feedback")
    assert any(sign in answer.content for sign in signs), "it says why"


def test_a_filter_that_cannot_be_read_is_a_page_to_a_browser(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert owner.get("/streams/orders/?match=.n+%3C").status_code == 422
    assert owner.get("/streams/orders/?match=.n+%3C", headers=BROWSER).status_code == 200


@pytest.mark.parametrize(
    ("path", "status"), [("/streams/nowhere/", 404), ("/streams/_bulk/?do=burn", 400), ("/logout/", 405)]
)
def test_what_is_no_form_keeps_its_status(owner: Client, path: str, status: int) -> None:
    assert owner.get(path, headers=BROWSER).status_code == status


def test_the_api_keeps_its_statuses(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    answer: Any = owner.post(
        "/api/v1/streams/", {"name": "orders"}, content_type="application/json", headers=BROWSER
    )
    assert answer.status_code == 401
