"""Every address of the console under every role: a new route without a row here fails."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from dashboard.urls import urlpatterns
from streams.access import role_for
from streams.models import Membership, Role, Workspace
from tests.dashboard.conftest import MakeStream

STREAM: dict[str, Any] = {"name": "orders"}
GROUP: dict[str, Any] = {**STREAM, "group": "billing"}
LETTER: dict[str, Any] = {**GROUP, "offset": 1}
MESSAGE: dict[str, Any] = {**STREAM, "offset": 1}


@dataclass(frozen=True)
class Row:
    """What a route takes, and the right that each of its methods needs; ``open`` needs no login."""

    get: str = ""
    post: str = ""
    at: dict[str, Any] = field(default_factory=dict)
    query: str = ""
    open: bool = False


METHODS = ("put", "patch", "delete", "options")
"""What no page takes."""

ROWS = {
    "overview": Row(get="observe"),
    "favicon": Row(open=True),
    "login": Row(open=True),
    "logout": Row(open=True),
    "theme": Row(open=True),
    "language": Row(open=True),
    "zone": Row(open=True),
    "workspace_choose": Row(post="observe"),
    "profile": Row(get="observe"),
    "password": Row(get="observe", post="observe"),
    "logins_end": Row(post="observe"),
    "live_now": Row(get="observe"),
    "demo_start": Row(post="manage"),
    "demo_stop": Row(post="manage"),
    "palette": Row(get="observe"),
    "system": Row(get="observe"),
    "alerts": Row(get="read", post="manage"),
    "alert_rule": Row(get="read", post="manage", at=STREAM),
    "alert_rule_switch": Row(post="manage", at=STREAM),
    "alert_rule_mute": Row(post="manage", at=STREAM),
    "alert_rule_test": Row(post="manage", at=STREAM),
    "alert_rule_delete": Row(get="manage", post="manage", at=STREAM),
    "sql": Row(get="read", post="read"),
    "sql_forget": Row(post="manage"),
    "sql_answer": Row(get="read", at={"query_id": 1}),
    "sql_cancel": Row(post="read", at={"query_id": 1}),
    "sql_csv": Row(get="read", at={"query_id": 1}),
    "sql_publish": Row(post="publish", at={"query_id": 1}),
    "events": Row(get="read"),
    "events_export": Row(get="read"),
    "stream_activity": Row(get="read", at=STREAM),
    "group_activity": Row(get="read", at=GROUP),
    "groups": Row(get="observe"),
    "groups_export": Row(get="observe"),
    "filter_save": Row(post="read"),
    "filter_delete": Row(post="read", at={"filter_id": 1}),
    "tails": Row(get="read", query="?streams=orders"),
    "tails_more": Row(get="read", query="?streams=orders"),
    "streams": Row(get="observe"),
    "stream_columns": Row(post="observe"),
    "streams_export": Row(get="observe"),
    "stream_purge": Row(get="manage", post="manage", at=STREAM),
    "streams_bulk": Row(get="manage", post="manage", query="?do=purge&stream=orders"),
    "stream_create": Row(get="manage", post="manage"),
    "stream_messages": Row(get="observe", at=STREAM),
    "message": Row(get="read", at=MESSAGE),
    "message_raw": Row(get="read", at=MESSAGE),
    "message_delete": Row(get="manage", post="manage", at=MESSAGE),
    "stream_export": Row(get="read", at=STREAM, query="?format=csv"),
    "stream_tail": Row(get="read", at=STREAM),
    "stream_publish": Row(get="read", post="publish", at=STREAM),
    "stream_publish_many": Row(get="read", post="publish", at=STREAM),
    "stream_rates": Row(get="observe", at=STREAM),
    "removal_undo": Row(post="manage", at={**STREAM, "number": 1}),
    "removal_end": Row(get="admin", post="admin", at={**STREAM, "number": 1}),
    "stream_retention": Row(get="observe", post="manage", at=STREAM),
    "stream_kept": Row(get="observe", at=STREAM),
    "stream_groups": Row(get="observe", post="manage", at=STREAM),
    "group": Row(get="observe", at=GROUP),
    "group_settings": Row(get="read", post="manage", at=GROUP),
    "group_pending": Row(get="read", at=GROUP),
    "group_settle": Row(get="consume", post="consume", at=GROUP),
    "group_seek": Row(post="manage", at=GROUP),
    "group_pause": Row(post="manage", at=GROUP),
    "group_resume": Row(post="manage", at=GROUP),
    "group_delete": Row(post="manage", at=GROUP),
    "dead_letters": Row(get="read", at=GROUP),
    "dead_letters_replay": Row(post="manage", at=GROUP),
    "dead_letters_bulk": Row(get="manage", post="manage", at=GROUP),
    "dead_letter": Row(get="read", at=LETTER),
    "dead_letter_raw": Row(get="read", at=LETTER),
    "stream_history": Row(get="read", post="manage", at=STREAM),
    "stream_erasures": Row(get="erase", post="erase", at=STREAM),
    "stream_replays": Row(get="read", at=STREAM),
    "stream_replay": Row(post="manage", at={**STREAM, "replay_id": 1, "do": "start"}),
    "stream_runs": Row(get="read", post="manage", at=STREAM),
    "stream_settings": Row(get="read", post="manage", at=STREAM),
    "stream_delete": Row(post="manage", at=STREAM),
    "tokens": Row(get="admin", post="admin"),
    "token_revoke": Row(post="admin", at={"token_id": 1}),
    "configuration": Row(get="read", post="admin"),
    "configuration_download": Row(get="read"),
    "people": Row(get="admin", post="admin"),
    "person_change": Row(get="admin", post="admin", at=STREAM),
    "person_password": Row(get="admin", post="admin", at=STREAM),
    "person_remove": Row(get="admin", post="admin", at=STREAM),
    "workspaces": Row(get="observe", post="admin"),
    "workspace": Row(get="admin", post="admin", at={"name": "default"}),
    "workspace_delete": Row(post="admin", at={"name": "elsewhere"}),
}


def calls() -> Iterator[Any]:
    for name, row in ROWS.items():
        for method, scope in (("get", row.get), ("post", row.post)):
            if scope:
                yield pytest.param(method, name, scope, id=f"{method} {name}")


def address(name: str) -> str:
    row = ROWS[name]
    return reverse(f"dashboard:{name}", kwargs=row.at) + row.query


def person(workspace: Workspace, role: str) -> Client:
    user = get_user_model().objects.create_user(role, password="correct-horse-battery")
    Membership.objects.create(user=user, workspace=workspace, role=role)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    assert {pattern.name for pattern in urlpatterns} == set(ROWS)


def others() -> Iterator[Any]:
    for name, row in ROWS.items():
        if not row.open:
            told = {"get": row.get, "post": row.post}
            yield from ((method, name) for method in (*METHODS, *told) if not told.get(method))


@pytest.mark.parametrize(("method", "name"), list(others()))
def test_what_a_row_does_not_name_is_not_taken(
    workspace: Workspace, make_stream: MakeStream, method: str, name: str
) -> None:
    make_stream("orders", bodies=[b"1"])
    assert getattr(person(workspace, "admin"), method)(address(name)).status_code == 405


@pytest.mark.parametrize(("method", "name", "scope"), list(calls()))
def test_a_page_is_for_those_whose_role_has_its_right(
    workspace: Workspace, make_stream: MakeStream, method: str, name: str, scope: str
) -> None:
    make_stream("orders", bodies=[b"1"])
    roles: list[str] = list(Role.values)
    for place, role in enumerate(roles):
        answer = getattr(person(workspace, role), method)(address(name))
        assert answer.status_code < 500, answer.content
        allowed = place >= roles.index(role_for(scope))
        assert (answer.status_code == 403) is not allowed, (role, answer.status_code)
        if not allowed:
            assert f"&#x27;{role_for(scope)}&#x27;" in answer.content.decode()


@pytest.mark.parametrize(("method", "name", "scope"), list(calls()))
def test_a_page_is_for_those_who_are_logged_in(nobody: Client, method: str, name: str, scope: str) -> None:
    answer = getattr(nobody, method)(address(name))
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/?next=")
