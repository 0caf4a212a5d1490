"""The address of the retention editor is what it shows: the limits that are not saved yet, and what they would do."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from streams.access import SYSTEM
from streams.models import Stream
from streams.services.streams import stream_change
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import sent_back

PAGE = "/streams/orders/retention/"
PART = {"HX-Request": "true"}
SAVED = {"ttl": "7 d", "max_bytes": "1 KiB", "discard": "old", "retention": "limits"}


@pytest.fixture
def stream(make_stream: MakeStream) -> Stream:
    return make_stream("orders", bodies=[b"12"] * 20, archive=False, ttl=604_800, max_bytes=1024)


def typed(owner: Client, **limits: str) -> Any:
    """The answer to a form in which limits were typed; what is empty is left out, as the page's script does."""
    form = {**SAVED, **sent_back(owner.get(PAGE)), **limits}
    return owner.get(PAGE, {name: text for name, text in form.items() if text}, headers=PART)


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", answer.content.decode())))


def shown(answer: Any) -> dict[str, Any]:
    return {name: answer.context["form"][name].value() for name in ("ttl", "max_messages", "max_bytes")}


@pytest.mark.parametrize(
    ("limits", "address"),
    [
        ({}, PAGE),
        ({"max_messages": "19"}, f"{PAGE}?max_messages=19"),
        ({"ttl": "", "discard": "new"}, f"{PAGE}?ttl=&discard=new"),
        ({"ttl": " 7 d "}, PAGE),
        ({"ttl": "soon\r\nX-Other: 1"}, f"{PAGE}?ttl=soon%0AX-Other%3A+1"),
    ],
    ids=str,
)
def test_what_is_typed_and_not_saved_stands_in_the_address(
    owner: Client, stream: Stream, limits: dict[str, str], address: str
) -> None:
    assert typed(owner, **limits)["HX-Replace-Url"] == address


def test_a_field_that_is_left_changes_no_address(owner: Client, stream: Stream) -> None:
    asked = {**SAVED, "ttl": "soon", "field": "ttl", "marked": "0"}
    assert "HX-Replace-Url" not in owner.get(PAGE, asked, headers=PART)


def test_an_address_that_was_sent_shows_the_same_limits_and_the_same_dry_run(
    owner: Client, viewer: Client, stream: Stream
) -> None:
    answer = typed(owner, max_messages="19", max_bytes="")
    assert "1 message (2 B) is removed now." in text_of(answer)
    opened = viewer.get(answer["HX-Replace-Url"])
    assert shown(opened) == {"ttl": "7 d", "max_messages": "19", "max_bytes": ""}
    assert "1 message (2 B) is removed now." in text_of(opened)
    for told in (text_of(answer), text_of(opened)):
        assert "Not saved yet: Max messages: no limit → 19, Max size: 1 KiB → no limit" in told
    stream.refresh_from_db()
    assert (stream.max_messages, stream.max_bytes) == (None, 1024)


def test_an_address_says_nothing_of_what_was_not_typed(owner: Client, stream: Stream) -> None:
    address = typed(owner, max_messages="19")["HX-Replace-Url"]
    stream_change(stream, changes={"ttl": 86_400}, actor=SYSTEM)
    opened = owner.get(address)
    assert shown(opened) == {"ttl": "1 d", "max_messages": "19", "max_bytes": "1 KiB"}
    assert "Max age" not in text_of(opened).partition("Not saved yet:")[2].partition(".")[0]


def test_an_address_with_a_wrong_limit_says_what_is_wrong_with_it(owner: Client, stream: Stream) -> None:
    opened = owner.get(typed(owner, ttl="soon")["HX-Replace-Url"])
    assert shown(opened)["ttl"] == "soon"
    assert "Max age: Enter a number and a unit" in text_of(opened)


def test_what_is_saved_is_not_marked(owner: Client, stream: Stream) -> None:
    for address in (PAGE, f"{PAGE}?ttl=7+d", f"{PAGE}?ttl=168+h"):
        assert "Not saved yet" not in text_of(owner.get(address))


def test_a_preset_is_the_whole_of_the_limits(owner: Client, stream: Stream) -> None:
    page = owner.get(PAGE).content.decode()
    (preset,) = re.findall(r'href="(\?[^"#]*)">Latest per key<', page)
    opened = owner.get(PAGE + unescape(preset))
    assert shown(opened) == {"ttl": "", "max_messages": "", "max_bytes": ""}
    assert opened.context["form"]["max_messages_per_key"].value() == "1"
    assert opened.context["effect"].changes == {"ttl": None, "max_bytes": None, "max_messages_per_key": 1}
