"""Where a page goes on to, as its form or its preview says: a path of this host from the root, or the view's own."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import LETTERS, PAGE, bury, fetched, make_group

REFUSED = ("x", "dashboard:overview", "?a=1", "./", " /", "//evil.example/", "http://testserver/streams/")
NEXT = "/streams/?name=a:b"
PERSON = {"username": "person", "password": "correct-horse-battery"}

TAKERS: tuple[tuple[str, str, dict[str, str], str], ...] = (
    # method, path, fields, where it goes without a next
    ("get", f"{LETTERS}bulk/", {}, LETTERS),
    ("get", f"{LETTERS}bulk/", {"do": "replay", "scope": "chosen", "offset": "999"}, LETTERS),
    (
        "post",
        f"{LETTERS}bulk/",
        {"do": "replay", "scope": "chosen", "offset": "1", "seen_offsets": "1"},
        LETTERS,
    ),
    ("post", f"{LETTERS}replay/", {"offset": "1"}, LETTERS),
    ("get", f"{PAGE}pending/settle/", {"what": "ack", "scope": "chosen", "offset": "999"}, f"{PAGE}pending/"),
    (
        "post",
        f"{PAGE}pending/settle/",
        {"what": "nack", "scope": "chosen", "offset": "2", "seen_offsets": "2"},
        f"{PAGE}pending/",
    ),
    ("post", "/alerts/lags/switch/", {"enabled": "off"}, "/alerts/"),
    ("post", "/alerts/lags/mute/", {"seconds": "3600"}, "/alerts/"),
    ("post", "/filters/save/", {"page": "streams", "name": "mine", "query": "name=ord"}, "/"),
    ("post", "/filters/save/", {"page": "nothing"}, "/"),
    ("post", "{filter}", {}, "/"),
    ("post", "/streams/_columns/", {"column": "lag"}, "/streams/"),
    ("post", "/theme/", {"theme": "dark"}, "/"),
    ("post", "/theme/", {"theme": "plaid"}, "/"),
    ("post", "/language/", {"language": "de"}, "/profile/"),
    ("post", "/zone/", {"zone": "UTC"}, "/profile/"),
    ("post", "/login/", PERSON, "/"),
    ("post", "/logout/", {}, "/login/"),
)


@pytest.mark.parametrize("wanted", [NEXT, *REFUSED])
def test_every_view_that_takes_a_next_goes_on_within_this_host(
    owner: Client, nobody: Client, make_stream: MakeStream, wanted: str
) -> None:
    get_user_model().objects.create_user(**PERSON)
    owner.post(
        "/alerts/", {"name": "lags", "stream": "orders", "watch": "lag", "limit": "2", "lasting": "90 s"}
    )
    billing = make_group(make_stream("orders", bodies=[b"1"] * 40))
    gone_to = {}
    for method, path, fields, default in TAKERS:
        if "dead-letters" in path:
            bury(billing, count=1)
        fetched(billing, limit=1)
        [kept] = re.findall(r"/filters/\d+/delete/", owner.get("/streams/").content.decode()) or [""]
        client = nobody if path == "/login/" else owner
        answer = getattr(client, method)(path.format(filter=kept), {**fields, "next": wanted})
        gone_to[method, path, *fields.items()] = (
            answer.status_code,
            answer.headers.get("Location"),
            default,
        )
    led = wanted if wanted == NEXT else None
    assert {key: (status, to) for key, (status, to, _) in gone_to.items()} == {
        key: (302, led or default) for key, (_, _, default) in gone_to.items()
    }
