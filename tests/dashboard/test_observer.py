"""Who may only observe sees how much there is and how it goes, on every page, and nothing that messages hold."""

import json
import re

import pytest
from django.test import Client

from streams import store
from streams.access import SYSTEM
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Group, Role, Workspace
from streams.services.messages import stream_purge
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import bury, fetched, make_group
from tests.dashboard.test_roles import ROWS, address, person

SECRET = "told-to-readers"
PART = SECRET[:-1]
"""What is looked for stands in the form again."""

SEEN = [name for name, row in ROWS.items() if row.get == "observe"]
QUERIES = {
    "overview": ["", "?range=custom&since=1 h ago&until=now"],
    "stream_messages": ["", "?open=1&cols=.of", f"?match={PART}", "?start=offset&at=1&decode=raw"],
    "group": ["", "?position=earliest", "?position=offset&at=1"],
    "stream_retention": ["", "?discard=old&max_messages=2"],
    "live_now": ["?topic=overview&topic=stream:orders&topic=group:orders/billing"],
    "palette": ["", "?q=o"],
    "streams": ["", "?name=orders"],
}


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    """A group of a stream whose messages hold the secret everywhere: some out, dead, or purged by their key."""
    group = make_group(make_stream("orders"))
    held = [
        NewMessage(
            id=f"{n}-{SECRET}",
            key=f"{SECRET}.{n}",
            headers=json.dumps({SECRET: SECRET}).encode(),
            body=json.dumps({"of": SECRET}).encode(),
        )
        for n in range(9)
    ]
    store.log().run(append(group.stream.stream_id, held))
    bury(group, count=2, why=SECRET)
    fetched(group, limit=2)
    stream_purge(group.stream, key=f"{SECRET}.8", actor=SYSTEM)
    return group


def asked(client: Client, name: str) -> list[str]:
    """What a page says in all its ways, to browsers and to scripts."""
    said = []
    for query in QUERIES.get(name, [""]):
        for headers in ({}, {"HX-Request": "true"}):
            answer = client.get(address(name) + query, headers=headers)
            said.append(answer.content.decode())
            if not headers:
                assert answer.status_code < 400, (name, query)
    return said


def test_no_page_tells_an_observer_what_messages_hold(workspace: Workspace, billing: Group) -> None:
    observer = person(workspace, Role.OBSERVER)
    for name in SEEN:
        for page in asked(observer, name):
            assert SECRET not in page, name


def test_the_pages_that_hold_messages_tell_a_viewer(workspace: Workspace, billing: Group) -> None:
    viewer = person(workspace, Role.VIEWER)
    telling = {name for name in SEEN if any(SECRET in page for page in asked(viewer, name))}
    assert telling == {"group", "stream_groups", "stream_messages", "stream_rates", "stream_retention"}


def test_what_an_observer_may_not_see_says_which_role_it_needs(workspace: Workspace, billing: Group) -> None:
    observer = person(workspace, Role.OBSERVER)
    page = observer.get("/streams/orders/").content.decode()
    assert "Messages are hidden" in page
    assert page.count("This needs the role viewer.") > 8
    assert 'href="/sql/"' not in page
    assert "Volume" in page
    for page in ("/streams/orders/groups/billing/", "/streams/orders/groups/", "/groups/"):
        shown = observer.get(page).content.decode()
        assert not re.search(r'href="[^"]*/billing/(pending|dead-letters)/', shown), page
