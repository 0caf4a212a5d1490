"""Narrowing a person to some streams in the console: how it is set, confirmed, shown and refused."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from streams.models import Event, Membership, Role, Workspace
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import sent_back

PEOPLE = "/settings/people/"


def streams_of(name: str) -> list[str]:
    held: list[str] = Membership.objects.get(user__username=name).streams
    return held


def test_a_person_is_taken_in_for_some_streams(owner: Client) -> None:
    owner.post(PEOPLE, {"name": "ada", "role": "operator", "streams": "ord*, shop-eu"})
    assert streams_of("ada") == ["ord*", "shop-eu"]
    event = Event.objects.filter(kind="user.added").latest("id")
    assert event.after == {"name": "ada", "role": "operator", "streams": ["ord*", "shop-eu"]}
    assert event.summary == "ada was added as operator, restricted to ord*, shop-eu."
    assert '<span class="mono">ord*, shop-eu</span>' in owner.get(PEOPLE).content.decode()


def test_a_person_is_narrowed_at_once_and_widened_again(
    owner: Client, viewer: Client, make_stream: MakeStream
) -> None:
    for name in ("orders", "canary"):
        make_stream(name)
    answer = owner.post(f"{PEOPLE}viewer/", {"streams": "ord*"}, follow=True)
    assert "viewer sees only the streams ord* now." in answer.content.decode()
    assert [viewer.get(f"/streams/{name}/").status_code for name in ("orders", "canary")] == [200, 403]
    answer = owner.post(f"{PEOPLE}viewer/", {"streams": ""}, follow=True)
    assert "viewer sees all streams now." in answer.content.decode()
    assert viewer.get("/streams/canary/").status_code == 200
    events = Event.objects.filter(kind="user.changed").order_by("id")
    assert [(event.before, event.after, event.summary) for event in events] == [
        (
            {"name": "viewer", "streams": []},
            {"name": "viewer", "streams": ["ord*"]},
            "viewer is restricted to ord* now.",
        ),
        (
            {"name": "viewer", "streams": ["ord*"]},
            {"name": "viewer", "streams": []},
            "viewer is no longer restricted to streams.",
        ),
    ]


@pytest.mark.parametrize("wrong", ["a b?", ", ,", "x" * 51, " ".join(["a"] * 101)])
def test_what_is_no_pattern_is_said_where_it_was_written(owner: Client, viewer: Client, wrong: str) -> None:
    answer = owner.post(f"{PEOPLE}viewer/", {"streams": wrong})
    assert answer.status_code == 422
    assert "invalid-feedback" in answer.content.decode()
    assert streams_of("viewer") == []
    assert owner.post(PEOPLE, {"name": "ada", "role": "viewer", "streams": wrong}).status_code == 422
    assert not get_user_model().objects.filter(username="ada").exists()


def test_the_form_opens_with_what_is_set(owner: Client, viewer: Client) -> None:
    owner.post(f"{PEOPLE}viewer/", {"streams": "ord*, shop-*"})
    assert 'href="?narrow=viewer"' in owner.get(PEOPLE).content.decode()
    page = owner.get(f"{PEOPLE}?narrow=viewer")
    assert page.status_code == 200
    assert 'value="ord*, shop-*"' in page.content.decode()
    assert owner.get(f"{PEOPLE}?narrow=nobody").status_code == 404


def test_a_role_leaves_the_streams_as_they_are(owner: Client, viewer: Client) -> None:
    owner.post(f"{PEOPLE}viewer/", {"streams": "ord*"})
    owner.post(f"{PEOPLE}viewer/", {"role": "operator"})
    assert streams_of("viewer") == ["ord*"]


def test_who_is_narrowed_sees_to_what(owner: Client, viewer: Client) -> None:
    owner.post(f"{PEOPLE}viewer/", {"streams": "ord*, shop-*"})
    profile = viewer.get("/profile/").content.decode()
    assert "ord*, shop-*" in profile
    assert "ord*, shop-*" in viewer.get("/").content.decode()
    refused = viewer.get("/settings/configuration/")
    assert refused.status_code == 403
    assert "Your access is restricted to streams; this applies to all." in refused.content.decode()
    assert re.search(r'aria-disabled="true" title="Your access is restricted to streams', profile)


def test_the_last_administrator_of_all_streams_stays_one(
    owner: Client, viewer: Client, stranger: Client, workspace: Workspace
) -> None:
    assert owner.post(f"{PEOPLE}owner/", {"streams": "ord*"}).status_code == 403
    assert owner.post(f"{PEOPLE}owner/", {"streams": "ord*", "seen_own": "yes"}).status_code == 403
    owner.post(f"{PEOPLE}viewer/", {"streams": "ord*"})
    owner.post(f"{PEOPLE}viewer/", {"role": "admin"})
    assert owner.post(f"{PEOPLE}owner/remove/").status_code == 403, "a narrowed one has no say about people"
    assert streams_of("owner") == []


def test_one_s_own_access_is_narrowed_only_when_it_was_said_what_that_means(
    owner: Client, viewer: Client
) -> None:
    owner.post(f"{PEOPLE}viewer/", {"role": "admin"})
    page = owner.post(f"{PEOPLE}owner/", {"streams": "ord*, shop-*"})
    text = page.content.decode()
    assert (
        "owner is admin of the workspace default and will see and manage only the streams ord*, shop-*"
        in text
    )
    assert "This is your own account." in text
    assert "/api/v1/users/owner?workspace=default" in text
    assert streams_of("owner") == []
    answer = owner.post(f"{PEOPLE}owner/", {"streams": "ord*, shop-*", **sent_back(page)}, follow=True)
    assert (answer.status_code, streams_of("owner")) == (200, ["ord*", "shop-*"])
    assert owner.get(PEOPLE).status_code == 403


def test_who_is_narrowed_in_one_workspace_is_not_in_another(
    owner: Client, viewer: Client, elsewhere: Workspace, make_stream: MakeStream
) -> None:
    make_stream("canary", within=elsewhere)
    Membership.objects.create(
        user=get_user_model().objects.get(username="viewer"), workspace=elsewhere, role=Role.VIEWER
    )
    owner.post(f"{PEOPLE}viewer/", {"streams": "ord*"})
    assert viewer.get("/streams/canary/").status_code == 403
    viewer.post("/workspace/", {"workspace": elsewhere.name})
    assert viewer.get("/streams/canary/").status_code == 200


def test_the_page_says_how_the_api_does_it(owner: Client) -> None:
    page = owner.post(PEOPLE, {"name": "owner", "role": "viewer", "streams": "ord*"}).content.decode()
    assert "&quot;streams&quot;: [&quot;ord*&quot;]" in page
