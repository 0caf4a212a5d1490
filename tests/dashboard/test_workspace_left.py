"""What was filled in for one workspace is not carried out in another: it may go, or its person, or the login."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from streams.access import SYSTEM
from streams.models import Membership, Role, Token, Workspace
from streams.services.people import person_remove
from streams.services.workspaces import workspace_delete

PASSWORD = "correct-horse-battery"
GONE = "elsewhere"
TOKENS, PEOPLE = "/settings/tokens/", "/settings/people/"
FORMS = {
    TOKENS: {"name": "for-elsewhere", "scopes": "admin", "streams": "", "expires": ""},
    PEOPLE: {"name": "contractor", "role": "admin"},
}


@pytest.fixture
def kim(workspace: Workspace, elsewhere: Workspace) -> Client:
    """Administrator of two workspaces, logged in with a browser and looking at the second one."""
    user = get_user_model().objects.create_user(username="kim", password=PASSWORD)
    for each in (workspace, elsewhere):
        Membership.objects.create(user=user, workspace=each, role=Role.ADMIN)
    browser = Client(enforce_csrf_checks=True)
    log_in(browser)
    send(browser, "/workspace/", {"workspace": GONE, **form(browser, "/")})
    assert shown_in(browser) == GONE
    return browser


def log_in(browser: Client) -> None:
    sent = {"username": "kim", "password": PASSWORD, **form(browser, "/login/")}
    assert send(browser, "/login/", sent).status_code == 302


def form(browser: Client, page: str) -> dict[str, str]:
    """What the form of a page brings along by itself."""
    content = browser.get(page).content.decode()
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', content))


def send(browser: Client, page: str, sent: dict[str, str], **headers: str) -> Any:
    return browser.post(page, sent, headers=headers)


def shown_in(browser: Client) -> str:
    return str(browser.get("/").context["caller"].workspace.name)


def removed() -> None:
    """Somebody takes kim out of the workspace."""
    held = Membership.objects.get(user__username="kim", workspace__name=GONE)
    person_remove(held, actor=SYSTEM, rules_all=True)


def deleted() -> None:
    """Somebody deletes the workspace."""
    workspace_delete(Workspace.objects.get(name=GONE), actor=SYSTEM)


def is_untouched() -> bool:
    return not Token.objects.exists() and not Membership.objects.filter(user__username="contractor").exists()


@pytest.mark.parametrize("leave", [removed, deleted])
def test_a_form_of_a_workspace_that_is_left_does_nothing_and_says_so(
    kim: Client, leave: Callable[[], None]
) -> None:
    filled_in = {page: {**sent, **form(kim, page)} for page, sent in FORMS.items()}
    leave()
    answer = send(kim, TOKENS, filled_in[TOKENS])
    assert (answer.status_code, answer["Location"]) == (302, "/")
    told = kim.get("/").content.decode()
    assert "You are now in the workspace default" in told
    assert "Nothing was done" in told
    assert send(kim, PEOPLE, filled_in[PEOPLE]).status_code == 403, "a form of before is void"
    assert send(kim, TOKENS, filled_in[TOKENS]).status_code == 403
    assert is_untouched()
    assert send(kim, TOKENS, {**FORMS[TOKENS], **form(kim, TOKENS)}).status_code == 200
    assert Token.objects.get().workspace.name == "default"


@pytest.mark.parametrize("leave", [removed, deleted])
def test_forms_are_void_once_a_page_has_been_of_the_other_workspace(
    kim: Client, leave: Callable[[], None]
) -> None:
    filled_in = {page: {**sent, **form(kim, page)} for page, sent in FORMS.items()}
    leave()
    told = kim.get("/streams/").content.decode()
    assert "You are now in the workspace default" in told
    assert "Nothing was done" not in told
    assert "You are now in the workspace" not in kim.get("/streams/").content.decode(), "said once"
    assert [send(kim, page, sent).status_code for page, sent in filled_in.items()] == [403, 403]
    assert is_untouched()


def test_what_a_page_polls_goes_to_the_other_workspace_as_a_whole(kim: Client) -> None:
    filled_in = {**FORMS[TOKENS], **form(kim, TOKENS)}
    removed()
    part = kim.get("/streams/", headers={"HX-Request": "true"})
    assert (part.status_code, part["HX-Redirect"]) == (401, "/")
    assert kim.get("/live/now/", headers={"Accept": "application/json"}).status_code == 200
    script = send(kim, TOKENS, filled_in, Accept="application/json")
    assert (script.status_code, script.json()["error"]["code"]) == (404, "workspace_not_found")
    assert is_untouched()


def test_a_workspace_that_comes_first_by_its_name_is_not_gone_to_by_itself(
    workspace: Workspace, elsewhere: Workspace
) -> None:
    user = get_user_model().objects.create_user(username="kim", password=PASSWORD)
    Membership.objects.create(user=user, workspace=elsewhere, role=Role.ADMIN)
    browser = Client(enforce_csrf_checks=True)
    log_in(browser)
    filled_in = {**FORMS[TOKENS], **form(browser, TOKENS)}
    Membership.objects.create(user=user, workspace=workspace, role=Role.ADMIN)
    assert send(browser, TOKENS, filled_in).status_code == 200
    assert Token.objects.get().workspace.name == GONE


def test_the_next_login_goes_on_in_the_workspace_of_before(kim: Client) -> None:
    filled_in = {**FORMS[TOKENS], **form(kim, TOKENS)}
    del kim.cookies["sessionid"]  # the session has ended
    assert send(kim, TOKENS, filled_in)["Location"].startswith("/login/")
    log_in(kim)
    assert shown_in(kim) == GONE
    assert send(kim, TOKENS, filled_in).status_code == 403, "a form of the login before is void"
    assert is_untouched()


def test_the_next_login_goes_elsewhere_when_the_workspace_of_before_is_left(kim: Client) -> None:
    del kim.cookies["sessionid"]
    removed()
    log_in(kim)
    assert shown_in(kim) == "default"


def test_another_person_at_the_same_browser_begins_in_a_workspace_of_their_own(
    kim: Client, workspace: Workspace, elsewhere: Workspace
) -> None:
    kim.logout()
    lee = get_user_model().objects.create_user(username="lee", password=PASSWORD)
    for each in (workspace, elsewhere):
        Membership.objects.create(user=lee, workspace=each, role=Role.ADMIN)
    sent = {"username": "lee", "password": PASSWORD, **form(kim, "/login/")}
    assert send(kim, "/login/", sent).status_code == 302
    assert shown_in(kim) == "default"
