"""Logging in and out; what nobody may see."""

import pytest
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.test import Client, RequestFactory
from django.urls import reverse
from django.views.defaults import permission_denied, server_error

from streams.models import Event, Workspace

PAGES = [
    "/",
    "/streams/",
    "/streams/_new/",
    "/streams/orders/",
    "/streams/orders/messages/1/",
    "/streams/orders/messages/1/raw/",
    "/streams/orders/publish/",
    "/streams/orders/history/",
    "/streams/orders/history/runs/",
    "/streams/orders/settings/",
    "/settings/tokens/",
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_needs_a_login_and_comes_back_to_it(nobody: Client, page: str) -> None:
    answer = nobody.get(page)
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={page}")


@pytest.mark.parametrize("page", ["/streams/orders/delete/", "/settings/tokens/1/revoke/", "/streams/_new/"])
def test_an_action_needs_a_login(nobody: Client, page: str) -> None:
    assert nobody.post(page).status_code == 302


def test_a_part_asked_for_without_a_login_sends_the_browser_to_the_login(nobody: Client) -> None:
    answer = nobody.get("/streams/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Redirect"]) == (401, "/login/")


def test_polling_without_a_login_is_401(nobody: Client) -> None:
    assert nobody.get("/live/now/", headers={"Accept": "application/json"}).status_code == 401


@pytest.fixture
def person(workspace: Workspace) -> str:
    get_user_model().objects.create_user(username="person", password="correct-horse-battery")
    return "person"


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [("/streams/", "/streams/"), ("https://evil.example/", "/"), ("//evil.example", "/"), ("", "/")],
)
def test_the_login_goes_on_to_addresses_of_this_host_only(
    nobody: Client, person: str, wanted: str, reached: str
) -> None:
    answer = nobody.post("/login/", {"username": person, "password": "correct-horse-battery", "next": wanted})
    assert (answer.status_code, answer["Location"]) == (302, reached)


def test_a_wrong_password_says_so_in_the_page(nobody: Client, person: str) -> None:
    answer = nobody.post("/login/", {"username": person, "password": "wrong"})
    assert b'role="alert"' in answer.content


def test_a_login_without_the_csrf_token_is_refused_in_the_house_look(person: str) -> None:
    answer = Client(enforce_csrf_checks=True).post("/login/", {"username": person, "password": "x"})
    assert answer.status_code == 403
    assert b"Nothing was changed" in answer.content


def test_logging_out_is_a_post(owner: Client) -> None:
    assert owner.get(reverse("dashboard:logout")).status_code == 405
    owner.post(reverse("dashboard:logout"))
    assert owner.get("/").status_code == 302


def test_the_theme_is_remembered_and_returns_to_the_page(owner: Client) -> None:
    answer = owner.post("/theme/", {"theme": "dark", "next": "/streams/?name=a"})
    assert answer["Location"] == "/streams/?name=a"
    assert b'data-theme="dark"' in owner.get("/").content


def test_the_theme_does_not_lead_elsewhere(owner: Client) -> None:
    assert owner.post("/theme/", {"theme": "dark", "next": "//evil.example"})["Location"] == "/"


def test_an_unknown_page_is_404_in_the_house_look(owner: Client) -> None:
    answer = owner.get("/nowhere/")
    assert answer.status_code == 404
    assert b"There is nothing here" in answer.content


def test_a_fault_of_ours_has_a_page_that_needs_nothing() -> None:
    answer = server_error(RequestFactory().get("/"))
    assert answer.status_code == 500
    assert b"Something went wrong on our side" in answer.content


def test_a_refusal_of_django_has_a_page() -> None:
    answer = permission_denied(RequestFactory().get("/"), exception=PermissionDenied())
    assert answer.status_code == 403
    assert b"You may not do that" in answer.content


def test_someone_without_a_workspace_is_told_so(nobody: Client, person: str) -> None:
    nobody.login(username=person, password="correct-horse-battery")
    answer = nobody.get("/")
    assert answer.status_code == 404
    assert b"You belong to no such workspace" in answer.content


def test_every_page_forbids_inline_scripts_and_other_hosts(nobody: Client) -> None:
    policy = nobody.get("/login/")["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_who_comes_and_goes_is_on_record(nobody: Client, person: str) -> None:
    nobody.post("/login/", {"username": person, "password": "wrong"})
    nobody.post("/login/", {"username": person, "password": "correct-horse-battery"})
    nobody.post("/logout/")
    found = Event.objects.filter(actor=person).order_by("id").values_list("kind", "address")
    assert list(found) == [("session.opened", "127.0.0.1"), ("session.closed", "127.0.0.1")]
