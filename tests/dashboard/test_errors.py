"""What Django refuses before a page sees it, in the house look: the reason, what to do, the request's id."""

from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils.html import strip_tags

from tests.dashboard.conftest import MakeStream

REQUEST = {"X-Request-ID": "req-1234"}
TOO_LARGE = "x" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)


def said(answer: Any) -> str:
    return " ".join(strip_tags(answer.content.decode()).split())


@pytest.mark.parametrize(
    "page",
    [
        "/streams/orders/publish/",
        "/streams/orders/publish/many/",
        "/streams/_new/",
        "/streams/orders/settings/",
        "/alerts/",
        "/sql/",
        "/settings/tokens/",
        "/login/",
    ],
)
@pytest.mark.parametrize("kind", ["multipart/form-data", "application/x-www-form-urlencoded"])
def test_a_form_that_is_too_large_gets_a_page_that_says_so(
    owner: Client, make_stream: MakeStream, page: str, kind: str
) -> None:
    make_stream("orders")
    if kind == "multipart/form-data":
        answer = owner.post(page, {"body": TOO_LARGE}, headers=REQUEST)
    else:
        answer = owner.post(page, f"body={TOO_LARGE}", content_type=kind, headers=REQUEST)
    assert answer.status_code == 413
    page_text = said(answer)
    assert "This form is too large." in page_text
    assert "Request req-1234" in page_text
    assert "Go to overview" in page_text


def test_so_does_one_that_is_asked_for_as_json(owner: Client) -> None:
    answer = owner.post("/alerts/", {"name": TOO_LARGE}, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "payload_too_large")


def test_a_form_with_too_many_fields_gets_it_too(owner: Client) -> None:
    many = {f"field{number}": "x" for number in range(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1)}
    answer = owner.post("/alerts/", many, headers=REQUEST)
    assert answer.status_code == 400
    assert "The request cannot be read." in said(answer)
    assert "Request req-1234" in said(answer)


def test_another_host_name_gets_it_too(nobody: Client) -> None:
    answer = nobody.get("/login/", headers={"Host": "elsewhere.example", **REQUEST})
    assert answer.status_code == 400
    assert "This host name is not served here; see OKMQ_ALLOWED_HOSTS." in said(answer)


def test_the_api_answers_in_its_own_shape(nobody: Client) -> None:
    answer = nobody.get("/api/v1/account/", headers={"Host": "elsewhere.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_host")
