"""Logging in and out; what nobody may see."""

import json
import math
import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from django.views.defaults import permission_denied

from dashboard.views.errors import server_error
from streams.access import SYSTEM
from streams.models import Event, FailedLogins, Login, Membership, OneTimePassword, Workspace
from streams.services.logins import FREE_FAILURES
from streams.services.people import person_add
from tests.dashboard.conftest import MakeStream

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


@pytest.mark.parametrize("page", ["/settings/tokens/1/revoke/", "/logout/", "/zone/"])
def test_an_address_of_an_action_says_that_it_is_no_page(owner: Client, nobody: Client, page: str) -> None:
    for client in (owner, nobody):
        answer = client.get(page, headers={"X-Request-Id": "asked-1"})
        assert (answer.status_code, answer["Allow"].split(", ")[0]) == (405, "POST")
        assert b"This address is not a page." in answer.content
        assert b"asked-1" in answer.content


@pytest.mark.parametrize(
    "page", ["/", "/streams/orders/", "/streams/orders/settings/", "/settings/tokens/", "/profile/password/"]
)
def test_head_answers_as_get_without_a_body(owner: Client, make_stream: MakeStream, page: str) -> None:
    make_stream("orders")
    asked, told = owner.get(page), owner.head(page)
    assert (told.status_code, told["Content-Type"]) == (asked.status_code, asked["Content-Type"])
    assert (told.status_code, told.content) == (200, b"")


def test_an_action_takes_no_head(owner: Client) -> None:
    answer = owner.head("/settings/tokens/1/revoke/")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")


@pytest.mark.parametrize("page", ["/streams/orders/delete/", "/settings/tokens/1/revoke/", "/streams/_new/"])
def test_an_action_needs_a_login(nobody: Client, page: str) -> None:
    assert nobody.post(page).status_code == 302


def test_a_part_asked_for_without_a_login_sends_the_browser_to_the_login(nobody: Client) -> None:
    answer = nobody.get("/streams/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Redirect"]) == (401, "/login/?next=%2F")
    shown = {"HX-Request": "true", "HX-Current-URL": "http://testserver/streams/?name=a"}
    answer = nobody.get("/streams/", headers=shown)
    assert (answer.status_code, answer["HX-Redirect"]) == (401, "/login/?next=%2Fstreams%2F%3Fname%3Da")


@pytest.mark.parametrize(
    ("action", "shown", "page"),
    [
        (
            "/streams/orders/delete/",
            "http://testserver/streams/orders/settings/",
            "/streams/orders/settings/",
        ),
        ("/streams/_new/", "http://testserver/streams/_new/", "/streams/_new/"),
        ("/streams/orders/delete/", "http://testserver/streams/orders/delete/", "/streams/orders/"),
        ("/streams/orders/delete/", "https://evil.example/streams/", "/streams/orders/"),
        ("/streams/orders/delete/", "", "/streams/orders/"),
        ("/settings/tokens/1/revoke/", "", "/"),
    ],
)
def test_an_action_after_the_session_ended_comes_back_to_its_page_and_says_that_nothing_was_done(
    nobody: Client, owner: Client, make_stream: MakeStream, action: str, shown: str, page: str
) -> None:
    make_stream("orders")
    answer = nobody.post(action, headers={"Referer": shown})
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={page}")
    log_in(nobody, RIGHT, name="owner")
    assert b"You were logged out; nothing was done." in nobody.get("/profile/").content


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


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/streams/orders/", 200),
        ("/streams/orders/messages/1/", 200),
        ("/streams/orders/messages/1/raw/", 200),
        ("/streams/orders/export/", 200),
        ("/streams/nowhere/", 404),
    ],
)
def test_what_a_page_shows_stays_in_no_cache(
    owner: Client, make_stream: MakeStream, path: str, status: int
) -> None:
    make_stream("orders", bodies=[b"1"])
    for headers in ({}, {"HX-Request": "true"}):
        answer = owner.get(path, headers=headers)
        assert (answer.status_code, answer["Cache-Control"]) == (status, "private, no-store")


def test_an_unknown_page_is_404_in_the_house_look(owner: Client) -> None:
    answer = owner.get("/nowhere/")
    assert answer.status_code == 404
    assert b"Not found." in answer.content


def test_a_fault_of_ours_has_a_page_that_needs_nothing() -> None:
    answer = server_error(RequestFactory().get("/", headers={"X-Request-Id": "mine-1"}))
    assert isinstance(answer, HttpResponse)
    assert answer.status_code == 500
    assert b"Something went wrong on our side" in answer.content
    assert b"mine-1" in answer.content


def test_a_fault_below_the_api_is_answered_as_the_api_does() -> None:
    answer = server_error(RequestFactory().get("/api/v1/streams/", headers={"X-Request-Id": "mine-1"}))
    assert isinstance(answer, HttpResponse)
    assert answer.status_code == 500
    assert json.loads(answer.content)["error"]["details"] == {"request_id": "mine-1"}


@pytest.mark.parametrize("path", ["/nowhere/", "/streams/nowhere/", "/streams/_bulk/?do=burn"])
def test_what_is_refused_says_the_id_to_ask_by(owner: Client, path: str) -> None:
    answer = owner.get(path, headers={"X-Request-Id": "<mine-1>"})
    assert answer.status_code in {400, 404}
    assert b"<bdi>&lt;mine-1&gt;</bdi>" in answer.content


def test_a_refusal_of_django_has_a_page() -> None:
    answer = permission_denied(RequestFactory().get("/"), exception=PermissionDenied())
    assert answer.status_code == 403
    assert b"You are not allowed to do that" in answer.content


def test_someone_without_a_workspace_is_told_so(nobody: Client, person: str) -> None:
    nobody.login(username=person, password="correct-horse-battery")
    answer = nobody.get("/")
    assert answer.status_code == 404
    assert b"You are not a member of that workspace" in answer.content


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


def log_in(client: Client, password: str, *, name: str = "person", **more: Any) -> Any:
    return client.post("/login/", {"username": name, "password": password}, **more)


RIGHT, WRONG = "correct-horse-battery", "wrong"


def test_a_login_begins_a_new_session(nobody: Client, person: str) -> None:
    session = nobody.session
    session["planted"] = True
    session.save()
    planted = session.session_key
    log_in(nobody, RIGHT)
    assert nobody.session.session_key != planted
    assert not Session.objects.filter(session_key=planted).exists()


def test_wrong_passwords_have_to_wait_and_the_right_one_too(nobody: Client, person: str) -> None:
    began = time.monotonic()
    statuses = [log_in(nobody, WRONG).status_code for _ in range(7)]
    assert statuses == [200] * 5 + [429] * 2
    answer = log_in(nobody, RIGHT)
    assert answer.status_code == 429
    assert 30 - math.ceil(time.monotonic() - began) <= int(answer["Retry-After"]) <= 30
    assert b"Too many wrong passwords" in answer.content
    assert [event.after for event in Event.objects.filter(kind="session.refused", actor="nobody")] == [
        {"account": "person"}
    ]


def test_a_name_that_cannot_be_is_a_wrong_one_like_others(nobody: Client) -> None:
    for name in ("", "a\x00b", "x" * 5000, "' OR 1=1 --", "<script>"):
        assert [log_in(nobody, WRONG, name=name).status_code for _ in range(6)] == [200] * 5 + [429]


def test_waiting_is_for_an_account_from_an_address(nobody: Client, person: str) -> None:
    for _ in range(7):
        log_in(nobody, WRONG)
    assert log_in(nobody, RIGHT, name="PERSON").status_code == 429
    assert log_in(nobody, WRONG, name="somebody").status_code == 200
    assert log_in(nobody, RIGHT, REMOTE_ADDR="192.0.2.7").status_code == 302


def test_an_address_that_tries_every_account_waits_for_all(nobody: Client, person: str) -> None:
    for number in range(FREE_FAILURES["address"]):
        log_in(nobody, WRONG, name=f"account-{number}")
    assert log_in(nobody, RIGHT).status_code == 429


def written() -> list[Any]:
    """What attempts to log in leave behind."""
    refused = (
        Event.objects.filter(kind="session.refused").order_by("id").values_list("id", "summary", "after")
    )
    return [list(refused), list(FailedLogins.objects.order_by("subject").values())]


def test_a_login_that_succeeds_at_the_last_free_attempt_is_no_failure(nobody: Client, person: str) -> None:
    for number in range(FREE_FAILURES["address"] - 1):
        log_in(nobody, WRONG, name=f"account-{number}")
    for _ in range(3):
        assert log_in(nobody, RIGHT).status_code == 302
        nobody.logout()
    assert not Event.objects.filter(kind="session.refused").exists()


def test_an_attempt_of_an_address_that_has_to_wait_leaves_nothing(nobody: Client, person: str) -> None:
    for number in range(FREE_FAILURES["address"]):
        log_in(nobody, WRONG, name=f"account-{number}")
    before = written()
    for number in range(4):
        for _ in range(FREE_FAILURES["account"] + 1):
            assert log_in(nobody, WRONG, name=f"other-{number}").status_code == 429
    assert log_in(nobody, RIGHT).status_code == 429
    assert written() == before
    FailedLogins.objects.update(blocked_until=timezone.now())
    assert log_in(nobody, RIGHT).status_code == 302


def test_an_attempt_at_an_account_that_has_to_wait_leaves_nothing(nobody: Client, person: str) -> None:
    for _ in range(FREE_FAILURES["account"]):
        log_in(nobody, WRONG)
    before = written()
    for _ in range(FREE_FAILURES["address"]):
        assert log_in(nobody, WRONG).status_code == 429
    assert written() == before
    assert log_in(nobody, WRONG, name="somebody").status_code == 200


def test_events_of_an_address_are_few_in_an_hour_whatever_it_tries(
    nobody: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, each = timezone.now(), FREE_FAILURES["account"]
    for minute in range(60):
        monkeypatch.setattr(timezone, "now", lambda minute=minute: began + timedelta(minutes=minute))
        for number in range(5 * FREE_FAILURES["address"] if minute == 0 else each):
            log_in(nobody, WRONG, name=f"account-{minute // 20}-{number // each}")
    first_burst = FREE_FAILURES["address"] // each + 1
    assert first_burst <= Event.objects.filter(kind="session.refused").count() <= first_burst + 2
    assert FailedLogins.objects.count() <= first_burst + 2


def test_the_neighbours_of_an_ipv6_address_count_as_it(nobody: Client, person: str) -> None:
    for number in range(1, 8):
        log_in(nobody, WRONG, REMOTE_ADDR=f"2001:db8::{number}")
    assert log_in(nobody, RIGHT, REMOTE_ADDR="2001:db8::ffff").status_code == 429
    assert log_in(nobody, RIGHT, REMOTE_ADDR="2001:db8:0:1::1").status_code == 302


def test_what_a_client_says_of_its_address_is_not_believed(nobody: Client, person: str) -> None:
    for number in range(7):
        log_in(nobody, WRONG, HTTP_X_FORWARDED_FOR=f"192.0.2.{number}")
    assert log_in(nobody, RIGHT, HTTP_X_FORWARDED_FOR="192.0.2.99").status_code == 429


def test_a_wait_ends_and_doubles(nobody: Client, person: str) -> None:
    for _ in range(6):
        log_in(nobody, WRONG)
    FailedLogins.objects.update(blocked_until=timezone.now())
    log_in(nobody, WRONG)
    before = timezone.now()
    told_s = int(log_in(nobody, RIGHT)["Retry-After"])
    waits = [held for held in FailedLogins.objects.all() if held.blocked_until is not None]
    longest = max(waits, key=lambda held: held.blocked_until or before)
    assert longest.blocked_until is not None
    assert longest.blocked_until - longest.last_at == timedelta(seconds=60)
    assert told_s <= round((longest.blocked_until - before).total_seconds()), "what is left of it"


def test_a_login_forgets_the_failures_before_it(nobody: Client, person: str) -> None:
    for _ in range(3):
        for _ in range(4):
            log_in(nobody, WRONG)
        assert log_in(nobody, RIGHT).status_code == 302
        nobody.logout()


@pytest.fixture
def one_time(workspace: Workspace) -> str:
    _, password = person_add(workspace, name="newcomer", role="viewer", actor=SYSTEM, may_share=False)
    return str(password)


def test_a_one_time_password_opens_only_its_own_change(nobody: Client, one_time: str) -> None:
    assert log_in(nobody, one_time, name="newcomer")["Location"] == "/profile/password/"
    assert nobody.get("/streams/")["Location"] == "/profile/password/"
    assert nobody.get("/api/v1/schema").status_code == 403
    chosen = {"new_password1": "a-long-new-word", "new_password2": "a-long-new-word"}
    assert nobody.post("/profile/password/", chosen)["Location"] == "/"
    assert nobody.get("/streams/").status_code == 200
    assert not OneTimePassword.objects.exists()
    assert log_in(Client(), one_time, name="newcomer").status_code == 200


def test_a_one_time_password_is_good_for_a_week(nobody: Client, one_time: str) -> None:
    OneTimePassword.objects.update(expires_at=timezone.now())
    answer = log_in(nobody, one_time, name="newcomer")
    assert b"This one-time password has expired" in answer.content


@pytest.fixture
def two_browsers(owner: Client) -> tuple[Client, Client]:
    first, second = Client(), Client()
    for browser in (first, second):
        log_in(browser, RIGHT, name="owner")
    return first, second


def test_changing_the_password_asks_for_it_and_ends_other_logins(two_browsers: tuple[Client, Client]) -> None:
    first, second = two_browsers
    chosen = {"new_password1": "a-long-new-word", "new_password2": "a-long-new-word"}
    assert first.post("/profile/password/", {"old_password": WRONG, **chosen}).status_code == 422
    assert first.post("/profile/password/", {"old_password": RIGHT, **chosen}).status_code == 302
    assert first.get("/streams/").status_code == 200
    assert second.get("/streams/").status_code == 302
    assert Login.objects.get().session_key == first.session.session_key


def test_a_weak_password_is_refused(two_browsers: tuple[Client, Client]) -> None:
    for weak in ("short", "password12"):
        chosen = {"old_password": RIGHT, "new_password1": weak, "new_password2": weak}
        assert two_browsers[0].post("/profile/password/", chosen).status_code == 422


def test_a_new_password_that_will_not_do_is_no_failed_login(two_browsers: tuple[Client, Client]) -> None:
    browser, long = two_browsers[0], "a-long-new-word"
    for first, second in [("short", "short"), (long, "another-long-one")] * FREE_FAILURES["account"]:
        chosen = {"old_password": RIGHT, "new_password1": first, "new_password2": second}
        assert browser.post("/profile/password/", chosen).status_code == 422
    assert not Event.objects.filter(kind="session.refused").exists()
    chosen = {"old_password": RIGHT, "new_password1": long, "new_password2": long}
    assert browser.post("/profile/password/", chosen).status_code == 302


@pytest.mark.parametrize("guess", [{"old_password": WRONG}, {}])
def test_whoever_guesses_the_present_password_has_to_wait(
    two_browsers: tuple[Client, Client], guess: dict[str, str]
) -> None:
    weak = {"new_password1": "short", "new_password2": "short"}
    statuses = [two_browsers[0].post("/profile/password/", {**guess, **weak}).status_code for _ in range(6)]
    assert statuses == [422] * 5 + [429]
    assert Event.objects.filter(kind="session.refused").exists()


def test_one_logs_out_everywhere_else(two_browsers: tuple[Client, Client]) -> None:
    first, second = two_browsers
    first.post("/profile/logins/end/")
    assert first.get("/").status_code == 200
    assert second.get("/").status_code == 302


def test_one_ends_a_single_login_and_nobody_elses(
    two_browsers: tuple[Client, Client], viewer: Client
) -> None:
    first, second = two_browsers
    ids: dict[str | None, int] = {login.session_key: login.pk for login in Login.objects.all()}
    viewer.post("/profile/logins/end/", {"login": ids[second.session.session_key]})
    assert second.get("/").status_code == 200
    first.post("/profile/logins/end/", {"login": ids[second.session.session_key]})
    assert second.get("/").status_code == 302


def test_cookies_are_kept_from_scripts_and_other_sites(nobody: Client, person: str) -> None:
    log_in(nobody, RIGHT)
    cookie = nobody.cookies["sessionid"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")


def test_a_person_of_two_workspaces_chooses_where_to_look(
    owner: Client, workspace: Workspace, elsewhere: Workspace, make_stream: MakeStream
) -> None:
    make_stream("ours")
    make_stream("theirs", within=elsewhere)
    assert b"workspace-choice" not in owner.get("/streams/").content
    Membership.objects.create(
        user=get_user_model().objects.get(username="owner"), workspace=elsewhere, role="viewer"
    )
    assert b"workspace-choice" in owner.get("/streams/").content
    assert owner.post("/workspace/", {"workspace": "elsewhere"})["Location"] == "/"
    assert owner.get("/streams/theirs/").status_code == 200
    assert owner.get("/streams/ours/").status_code == 404
    assert owner.post("/streams/theirs/delete/", {"confirm": "theirs"}).status_code == 403
    Membership.objects.filter(workspace=elsewhere).delete()
    assert owner.get("/streams/ours/").status_code == 200


def test_a_workspace_that_is_not_theirs_cannot_be_chosen(owner: Client, elsewhere: Workspace) -> None:
    assert owner.post("/workspace/", {"workspace": "elsewhere"}).status_code == 404


def test_a_form_of_another_workspace_is_void(owner: Client) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.cookies = owner.cookies
    browser.get("/streams/_new/")
    before = browser.cookies["csrftoken"].value
    browser.post("/workspace/", {"workspace": "default", "csrfmiddlewaretoken": before})
    late = browser.post("/streams/_new/", {"name": "late", "csrfmiddlewaretoken": before})
    assert late.status_code == 403
