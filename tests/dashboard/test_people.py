"""People and workspaces in the console."""

import re

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.test import Client
from django.utils import timezone

from streams import store
from streams.access import SYSTEM
from streams.log import groups, stats, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import CAPS, Cap, Membership, OneTimePassword, Plan, Role, Stream, Workspace
from streams.services.groups import group_create, group_seek
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import sent_back

PEOPLE, ROOMS = "/settings/people/", "/settings/workspaces/"


def secret_in(content: bytes) -> str:
    (found,) = re.findall(r"<code data-copy-source>([\w-]{16})</code>", content.decode())
    return str(found)


def test_a_new_person_s_password_is_shown_once(owner: Client) -> None:
    answer = owner.post(PEOPLE, {"name": "ada@example.com", "role": "operator"})
    secret = secret_in(answer.content)
    assert authenticate(username="ada@example.com", password=secret) is not None
    assert "no-store" in answer["Cache-Control"]
    page = owner.get(PEOPLE).content.decode()
    assert secret not in page
    assert "ada@example.com" in page


def test_a_person_s_role_changes(owner: Client, viewer: Client) -> None:
    owner.post(f"{PEOPLE}viewer/", {"role": "operator"})
    assert viewer.get("/streams/_new/").status_code == 200


def test_a_deactivated_person_is_out_at_once(owner: Client, viewer: Client) -> None:
    owner.post(f"{PEOPLE}viewer/", {"active": "no"})
    assert viewer.get("/").status_code == 302
    owner.post(f"{PEOPLE}viewer/", {"active": "yes"})
    assert get_user_model().objects.get(username="viewer").is_active


def test_a_reset_password_is_shown_once_and_ends_the_logins(owner: Client, viewer: Client) -> None:
    secret = secret_in(owner.post(f"{PEOPLE}viewer/password/").content)
    assert authenticate(username="viewer", password=secret) is not None
    assert OneTimePassword.objects.filter(user__username="viewer").exists()
    assert viewer.get("/").status_code == 302


def test_a_one_time_password_leaves_a_deactivated_person_deactivated(owner: Client, viewer: Client) -> None:
    owner.post(f"{PEOPLE}viewer/", {"active": "no"})
    page = owner.post(f"{PEOPLE}viewer/password/")
    secret = secret_in(page.content)
    assert b"viewer is deactivated and can log in with it only once activated." in page.content
    assert authenticate(username="viewer", password=secret) is None
    assert not get_user_model().objects.get(username="viewer").is_active
    owner.post(f"{PEOPLE}viewer/", {"active": "yes"})
    assert authenticate(username="viewer", password=secret) is not None
    assert b"only once activated" not in owner.post(f"{PEOPLE}viewer/password/").content


def test_the_address_of_what_was_done_to_a_person_leads_back_to_the_people(
    owner: Client, viewer: Client
) -> None:
    assert owner.get(f"{PEOPLE}viewer/")["Location"] == PEOPLE
    assert viewer.get(f"{PEOPLE}viewer/").status_code == 403


def test_a_password_is_given_only_when_it_was_said_what_that_means(owner: Client, viewer: Client) -> None:
    before = get_user_model().objects.get(username="viewer").password
    people = owner.get(PEOPLE).content.decode()
    assert f'href="{PEOPLE}viewer/password/"' in people
    assert f'action="{PEOPLE}viewer/password/"' not in people
    page = owner.get(f"{PEOPLE}viewer/password/").content.decode()
    assert "The password of viewer stops working at once, and viewer is logged out everywhere." in page
    assert "This is your own account." not in page
    assert "/api/v1/users/viewer/password?workspace=default" in page
    assert get_user_model().objects.get(username="viewer").password == before
    assert viewer.get("/").status_code == 200
    assert viewer.get(f"{PEOPLE}viewer/password/").status_code == 403


def test_so_is_one_s_own(owner: Client) -> None:
    page = owner.get(f"{PEOPLE}owner/password/").content.decode()
    assert "This is your own account." in page
    assert "disabled" not in page.split('class="btn btn-danger"')[1].split(">")[0], "also the last admin may"
    assert owner.get("/").status_code == 200


def test_a_removed_person_sees_nothing_more(owner: Client, viewer: Client) -> None:
    owner.post(f"{PEOPLE}viewer/remove/")
    assert viewer.get("/").status_code == 302
    assert not Membership.objects.filter(user__username="viewer").exists()


def test_a_person_is_removed_only_when_it_was_said_what_that_means(owner: Client, viewer: Client) -> None:
    people = owner.get(PEOPLE).content.decode()
    assert f'href="{PEOPLE}viewer/remove/"' in people
    assert f'action="{PEOPLE}viewer/remove/"' not in people
    page = owner.get(f"{PEOPLE}viewer/remove/").content.decode()
    assert "viewer is viewer of the workspace default and loses access to it at once." in page
    assert "the account is deactivated and logged out everywhere." in page
    assert "last admin" not in page
    assert "Remove viewer</button>" in page
    assert Membership.objects.filter(user__username="viewer").exists()


def test_who_belongs_to_others_keeps_the_account(owner: Client, viewer: Client, elsewhere: Workspace) -> None:
    Membership.objects.create(user=get_user_model().objects.get(username="viewer"), workspace=elsewhere)
    page = owner.get(f"{PEOPLE}viewer/remove/").content.decode()
    assert "The account stays, in 1 other workspace." in page
    assert "deactivated" not in page


def role_of(name: str, workspace: Workspace) -> str:
    held = Membership.objects.filter(user__username=name, workspace=workspace).first()
    return held.role if held else ""


def test_the_last_administrator_of_a_workspace_cannot_leave_it_without_one(
    stranger: Client, elsewhere: Workspace
) -> None:
    page = stranger.get(f"{PEOPLE}stranger/remove/").content.decode()
    assert "The last administrator of the workspace &#x27;elsewhere&#x27; cannot be removed" in page
    assert 'class="btn btn-danger" disabled' in page
    for tail, form in (
        ("", {"role": "viewer"}),
        ("", {"role": "viewer", "seen_own": "yes"}),
        ("", {"active": "no"}),
        ("remove/", {}),
    ):
        answer = stranger.post(f"{PEOPLE}stranger/{tail}", form)
        assert answer.status_code == 403
        assert b"make somebody else admin first" in answer.content
    assert role_of("stranger", elsewhere) == Role.ADMIN
    assert get_user_model().objects.get(username="stranger").is_active


def test_one_s_own_role_is_lowered_only_when_it_was_said_what_that_means(
    owner: Client, viewer: Client, workspace: Workspace
) -> None:
    owner.post(f"{PEOPLE}viewer/", {"role": "admin"})
    page = owner.post(f"{PEOPLE}owner/", {"role": "operator"})
    assert b"owner is admin of the workspace default and will be operator" in page.content
    assert b"This is your own account." in page.content
    assert role_of("owner", workspace) == Role.ADMIN
    answer = owner.post(f"{PEOPLE}owner/", {"role": "operator", **sent_back(page)}, follow=True)
    assert (answer.status_code, role_of("owner", workspace)) == (200, Role.OPERATOR)
    assert b"owner is operator now." in answer.content


def test_another_administrator_s_role_is_lowered_at_once(
    owner: Client, viewer: Client, workspace: Workspace
) -> None:
    owner.post(f"{PEOPLE}viewer/", {"role": "admin"})
    owner.post(f"{PEOPLE}viewer/", {"role": "viewer"})
    assert role_of("viewer", workspace) == Role.VIEWER


def test_who_became_the_last_administrator_meanwhile_stays(
    owner: Client, viewer: Client, workspace: Workspace
) -> None:
    owner.post(f"{PEOPLE}viewer/", {"role": "admin"})
    assert b"disabled title=" not in owner.get(f"{PEOPLE}owner/remove/").content
    viewer.post(f"{PEOPLE}viewer/", {"role": "viewer", "seen_own": "yes"})
    answer = owner.post(f"{PEOPLE}owner/remove/")
    assert answer.status_code == 403
    assert role_of("owner", workspace) == Role.ADMIN


def test_an_administrator_whose_one_time_password_has_expired_is_none_who_may_log_in(
    owner: Client, viewer: Client, workspace: Workspace
) -> None:
    owner.post(PEOPLE, {"name": "ghost", "role": "admin"})
    assert b"disabled title=" not in owner.get(f"{PEOPLE}owner/remove/").content, "it still opens"
    assert b"one-time password expired" not in owner.get(PEOPLE).content
    OneTimePassword.objects.filter(user__username="ghost").update(expires_at=timezone.now())
    assert b"one-time password expired" in owner.get(PEOPLE).content
    for tail, form in (("", {"role": "viewer", "seen_own": "yes"}), ("", {"active": "no"}), ("remove/", {})):
        assert owner.post(f"{PEOPLE}owner/{tail}", form).status_code == 403
    assert role_of("owner", workspace) == Role.ADMIN
    answer = owner.post(f"{PEOPLE}ghost/remove/")
    assert (answer.status_code, role_of("ghost", workspace)) == (302, ""), "who may not is in nobody's way"


def test_the_last_administrator_stays(owner: Client) -> None:
    answer = owner.post(f"{PEOPLE}owner/", {"role": "viewer"})
    assert answer.status_code == 403
    assert b"The last administrator" in answer.content


def test_people_of_another_workspace_are_out_of_reach(owner: Client, stranger: Client) -> None:
    for tail in ("", "password/", "remove/"):
        assert stranger.post(f"{PEOPLE}owner/{tail}", {"role": "viewer"}).status_code == 404
    assert b"owner" not in stranger.get(PEOPLE).content


def test_what_a_role_does_not_allow_is_there_and_says_what_it_needs(viewer: Client) -> None:
    page = viewer.get("/streams/").content.decode()
    assert 'aria-disabled="true" title="This needs the role admin."' in page
    assert 'href="/settings/people/"' not in page


def test_a_viewer_sees_plan_and_rate_limit_of_the_own_workspace_only(
    viewer: Client, workspace: Workspace, elsewhere: Workspace
) -> None:
    Workspace.objects.filter(pk=workspace.pk).update(rate_limit=50, rate_burst=200, plan=Plan.PRO)
    page = viewer.get(ROOMS).content.decode()
    assert "50 per second, burst 200" in page
    assert "elsewhere" not in page
    assert "This needs the role admin in the workspace default." in page


def test_a_workspace_s_rate_limit_is_changed(owner: Client, elsewhere: Workspace) -> None:
    form = {"plan": "unlimited", "rate_limit": "20", "rate_burst": "", "do": "save"}
    assert owner.post(f"{ROOMS}elsewhere/", form).status_code == 302
    elsewhere.refresh_from_db()
    assert (elsewhere.rate_limit, elsewhere.rate_burst) == (20, None)
    assert "20 per second" in owner.get(ROOMS).content.decode()


def test_a_plan_that_bounds_streams_is_saved_only_when_its_effect_was_seen(
    owner: Client, workspace: Workspace, make_stream: MakeStream
) -> None:
    make_stream("orders", ttl=None)
    form = {"plan": "free", "do": "save"}
    shown = owner.post(f"{ROOMS}default/", form)
    assert b"Streams with tighter limits under plan free: 1." in shown.content
    assert Stream.objects.get(name="orders").ttl is None
    make_stream("payments", ttl=None)
    moved = owner.post(f"{ROOMS}default/", {**form, **sent_back(shown)})
    assert b"The effect has changed since the preview" in moved.content
    assert owner.post(f"{ROOMS}default/", {**form, **sent_back(moved)}).status_code == 302
    assert Stream.objects.get(name="orders").ttl == 7 * 86_400


def test_a_plan_is_saved_when_no_more_goes_than_was_seen(
    owner: Client, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CAPS, Plan.FREE, Cap(None, None, 3))
    stream, form = make_stream("orders", bodies=[b"1"] * 5, archive=False), {"plan": "free", "do": "save"}
    shown = owner.post(f"{ROOMS}default/", form)
    assert b"Stored messages removed at once: 2." in shown.content
    store.log().run(append(stream.stream_id, [NewMessage(id="more", body=b"1")]))
    moved = owner.post(f"{ROOMS}default/", {**form, **sent_back(shown)})
    assert b"Stored messages removed at once: 3." in moved.content
    store.log().run(trim.purge(stream.stream_id, below=2))
    assert owner.post(f"{ROOMS}default/", {**form, **sent_back(moved)}).status_code == 302
    assert store.log().run(stats.inspect(stream.stream_id)).messages == 3


def test_a_plan_is_saved_when_no_group_loses_more_than_was_seen(
    owner: Client, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CAPS, Plan.FREE, Cap(None, None, 3))
    stream, form = make_stream("orders", bodies=[b"1"] * 5, archive=False), {"plan": "free", "do": "save"}
    group, _ = group_create(stream, name="billing", settings={}, actor=SYSTEM)
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=1))
    store.log().run(groups.ack(stream.stream_id, "billing", "up_to", [1]))
    shown = owner.post(f"{ROOMS}default/", form)
    assert b"1 group loses 1 message not acknowledged yet." in shown.content
    assert b"<bdi>billing</bdi> 1<" in shown.content
    group_seek(group, next_offset=1, actor=SYSTEM)
    moved = owner.post(f"{ROOMS}default/", {**form, **sent_back(shown)})
    assert b"The effect has changed since the preview" in moved.content
    assert b"1 group loses 2 messages not acknowledged yet." in moved.content
    assert owner.post(f"{ROOMS}default/", {**form, **sent_back(moved)}).status_code == 302


def test_a_plan_that_takes_from_a_production_stream_asks_for_the_workspace_s_name(
    owner: Client, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CAPS, Plan.FREE, Cap(None, None, 3))
    make_stream("orders", bodies=[b"1"] * 5, archive=False, labels={"env": "production"})
    wanted = {"plan": "free", "do": "save"}
    form = {**wanted, **sent_back(owner.post(f"{ROOMS}default/", wanted))}
    assert owner.post(f"{ROOMS}default/", form).status_code == 422
    assert Stream.objects.get(name="orders").max_bytes is None
    assert owner.post(f"{ROOMS}default/", {**form, "confirm": "default"}).status_code == 302
    assert Stream.objects.get(name="orders").max_bytes == 3


def test_a_workspace_is_made_and_deleted_for_its_name(owner: Client) -> None:
    owner.post(ROOMS, {"name": "billing", "plan": "pro"})
    assert Workspace.objects.get(name="billing").plan == Plan.PRO
    assert owner.post(f"{ROOMS}billing/delete/", {"confirm": "bill"}).status_code == 422
    owner.post(f"{ROOMS}billing/delete/", {"confirm": "billing"})
    assert not Workspace.objects.filter(name="billing").exists()


def test_the_admin_of_another_workspace_rules_none(stranger: Client, workspace: Workspace) -> None:
    assert stranger.post(ROOMS, {"name": "mine", "plan": "free"}).status_code == 403
    assert stranger.get(f"{ROOMS}default/").status_code == 404
    assert stranger.post(f"{ROOMS}elsewhere/", {"plan": "free", "do": "save"}).status_code == 403
    assert stranger.post(f"{ROOMS}elsewhere/delete/", {"confirm": "elsewhere"}).status_code == 403
