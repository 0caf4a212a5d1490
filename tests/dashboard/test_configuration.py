"""Configuration as a file in the console: downloaded, looked at, applied as it was seen."""

import re
import time
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from streams import store
from streams.access import SYSTEM
from streams.api.declared.state import exported
from streams.log import groups, stats
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Event, Group, Policy, Stream, Workspace
from streams.selectors import METRICS_STREAM
from streams.services.groups import group_create, group_seek
from streams.services.streams import internal_stream
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import sent_back
from tests.dashboard.moving import sampled

PAGE = "/settings/configuration/"
TIGHTER = "okmq: 1\nstreams:\n  orders: {max_messages: 4}\n"


def looked_at(page: Client, text: str, **more: str) -> Any:
    return page.post(PAGE, {"text": text, "do": "look", **more})


def applied(page: Client, seen: Any, **more: str) -> Any:
    """The form of a page that was seen, sent back to apply what it shows."""
    (text,) = re.findall(r'<textarea name="text"[^>]*>\n(.*?)</textarea>', shown(seen), re.DOTALL)
    prune = {"prune": "on"} if re.search(r'name="prune"[^>]* checked', shown(seen)) else {}
    form = {"text": unescape(text), **prune, **sent_back(seen), "do": "apply", **more}
    return page.post(PAGE, form, follow=True)


def shown(answer: Any) -> str:
    return str(answer.content.decode())


def count(name: str) -> int:
    return store.log().run(stats.inspect(Stream.objects.get(name=name).stream_id)).messages


def publish(stream: Stream, number: int, *, first: int = 100) -> None:
    """Messages of a byte, with ids from ``first`` on."""
    more = [NewMessage(id=f"m{each}", body=b"1") for each in range(first, first + number)]
    store.log().run(append(stream.stream_id, more))


def test_the_file_of_now_is_downloaded(
    owner: Client, viewer: Client, make_stream: MakeStream, workspace: Workspace
) -> None:
    make_stream("orders", ttl=60)
    for page in (owner, viewer):
        answer = page.get(f"{PAGE}download/")
        assert answer["Content-Disposition"] == 'attachment; filename="default.yaml"'
        assert answer.content.decode() == exported(workspace)


def test_a_file_is_looked_at_and_then_applied_by_who_looked(
    owner: Client, make_stream: MakeStream, workspace: Workspace
) -> None:
    make_stream("orders", ttl=60)
    text = "okmq: 1\npolicies: {week: {ttl: 604800}}\nstreams:\n  orders: {ttl: 90, groups: {billing: {}}}\n"
    seen = looked_at(owner, text)
    assert "ttl: 60 → 90" in shown(seen)
    assert "group billing of orders" in shown(seen)
    assert not Policy.objects.exists()
    answer = applied(owner, seen)
    assert "The file was applied: 2 created, 1 changed." in shown(answer)
    assert Stream.objects.get(name="orders").ttl == 90
    assert Group.objects.filter(name="billing").exists()
    assert Event.objects.get(kind="policy.created").actor == "owner"


def test_a_file_may_be_loaded_in_place_of_being_pasted(owner: Client) -> None:
    loaded = SimpleUploadedFile("streams.yaml", b"okmq: 1\nstreams: {loaded: {}}\n")
    seen = owner.post(PAGE, {"text": "", "file": loaded, "do": "look"})
    assert "stream loaded" in shown(seen)
    applied(owner, seen)
    assert Stream.objects.filter(name="loaded").exists()


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"text": " "}, "Paste or upload a file."),
        ({"file": SimpleUploadedFile("a.yaml", b"\xff\xfe")}, "Not UTF-8 text."),
        ({"file": SimpleUploadedFile("a.yaml", b" " * 131_073)}, "Too long for this page"),
        ({"text": "okmq: 1\nstreams:\n  orders: {ttl: soon}\n"}, "3:12: streams.orders.ttl: "),
        ({"text": "okmq: 1\nworkspace: elsewhere\n"}, "2:1: workspace: This is for another workspace"),
    ],
)
def test_what_cannot_be_applied_is_said_with_its_place(
    owner: Client, form: dict[str, Any], said: str
) -> None:
    answer = owner.post(PAGE, {"do": "look", **form})
    assert answer.status_code == 422
    assert said in shown(answer)


def test_a_small_loss_is_shown_and_needs_no_name(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"] * 10)
    seen = looked_at(owner, TIGHTER)
    assert "6 messages are removed" in shown(seen)
    assert 'name="confirm"' not in shown(seen)
    assert count("orders") == 10
    applied(owner, seen)
    assert count("orders") == 4


def test_a_stream_that_moves_lends_its_pace_to_no_other(owner: Client, make_stream: MakeStream) -> None:
    """What may go within the minute is of the streams of which something goes, each for itself; also where they go."""
    still, moves = make_stream("orders", bodies=[b"1"] * 10), make_stream("clicks", bodies=[b"1"] * 10)
    metrics, now = internal_stream(METRICS_STREAM, archive=False), time.time()
    for ago_s in (3.0, 2.0, 1.0):
        sampled(metrics, at_s=now - ago_s, moved={still: 0.0, moves: 50.0})
    assert "Streams are changing" not in shown(looked_at(owner, TIGHTER))
    both = "okmq: 1\nstreams: {orders: {max_messages: 4}}\n"
    seen = looked_at(owner, both, prune="on")
    assert "Streams are changing" in shown(seen)
    publish(moves, 90)
    publish(still, 90)
    assert "nothing was applied" in shown(applied(owner, seen, confirm="default"))
    seen = looked_at(owner, both, prune="on")
    publish(moves, 90, first=200)
    applied(owner, seen, confirm="default")
    assert not Stream.objects.filter(name="clicks").exists()


def test_while_streams_move_what_goes_is_asked_for_again(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", bodies=[b"1"] * 10)
    assert "hx-post" not in shown(looked_at(owner, TIGHTER))
    metrics, now = internal_stream(METRICS_STREAM, archive=False), time.time()
    for ago_s in (3.0, 2.0, 1.0):
        sampled(metrics, at_s=now - ago_s, moved={stream: 50.0})
    seen = looked_at(owner, TIGHTER)
    (asks,) = re.findall(
        r'<div hx-post="([^"]+)" hx-trigger="okmq:quarter-minute from:document"', shown(seen)
    )
    assert asks == PAGE
    publish(stream, 5)
    part = {"HX-Request": "true"}
    again = owner.post(PAGE, {"text": TIGHTER, "do": "look", **sent_back(seen)}, headers=part)
    assert "11 messages are removed" in shown(again)
    assert "<html" not in shown(again)
    assert 'name="seen_messages" value="11"' in shown(again)
    assert count("orders") == 15
    for text in ("", "okmq: 1\nstreams: {orders: {ttl: soo"):
        answer = owner.post(PAGE, {"text": text, "do": "look"}, headers=part)
        assert (answer.status_code, answer.content) == (204, b""), "what is shown stays while somebody writes"


def test_no_more_goes_than_was_shown(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", bodies=[b"1"] * 10)
    seen = looked_at(owner, TIGHTER)
    more = [NewMessage(id=f"more{number}", body=b"1") for number in range(500)]
    store.log().run(append(stream.stream_id, more))
    answer = applied(owner, seen)
    assert "The effect has changed since the preview; nothing was applied." in shown(answer)
    assert "506 messages are removed" in shown(answer)
    assert count("orders") == 510
    applied(owner, answer)
    assert count("orders") == 4


def test_no_group_loses_more_unread_than_was_shown(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders", bodies=[b"1"] * 10)
    group, _ = group_create(stream, name="billing", settings={}, actor=SYSTEM)
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=4))
    store.log().run(groups.ack(stream.stream_id, "billing", "up_to", [4]))
    seen = looked_at(owner, TIGHTER)
    assert "group billing loses 2 unread messages" in shown(seen)
    group_seek(group, next_offset=1, actor=SYSTEM)
    answer = applied(owner, seen)
    assert "The effect has changed since the preview; nothing was applied." in shown(answer)
    assert "group billing loses 6 unread messages" in shown(answer)
    applied(owner, answer)
    assert count("orders") == 4


def test_other_changes_than_were_shown_are_not_made(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"] * 10)
    seen = looked_at(owner, TIGHTER)
    answer = applied(owner, seen, text=TIGHTER.replace("4", "5"))
    assert "nothing was applied" in shown(answer)
    assert count("orders") == 10


def labelled(env: str) -> str:
    return TIGHTER.replace("}", f", groups: {{billing: {{}}}}, labels: {{env: {env}}}}}")


@pytest.mark.parametrize(
    ("labels", "bodies", "text"),
    [
        pytest.param({}, 1, "okmq: 1\nstreams: {}\n", id="a stream goes"),
        pytest.param({}, 1, "okmq: 1\nstreams: {orders: {}}\n", id="a group goes"),
        pytest.param({"env": "production"}, 10, labelled("production"), id="messages of production go"),
        pytest.param({"env": "production"}, 10, labelled("test"), id="messages of what was production go"),
        pytest.param(
            {"env": "test"}, 10, labelled("production"), id="messages of what is to be production go"
        ),
        pytest.param({}, 1100, labelled("test"), id="a thousand messages are removed"),
    ],
)
def test_a_large_loss_asks_for_the_workspace_s_name(
    owner: Client,
    make_stream: MakeStream,
    workspace: Workspace,
    labels: dict[str, str],
    bodies: int,
    text: str,
) -> None:
    stream = make_stream("orders", bodies=[b"1"] * bodies, labels=labels)
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    seen = looked_at(owner, text, prune="on")
    before = exported(workspace)
    refused = applied(owner, seen, confirm="orders")
    assert "That does not match. Nothing was done." in shown(refused)
    assert exported(workspace) == before
    answer = applied(owner, seen, confirm="default")
    assert "The file was applied" in shown(answer)
    assert exported(workspace) != before


def test_what_the_file_does_not_declare_stays_unless_it_is_to_go(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders", bodies=[b"1"] * 3)
    seen = looked_at(owner, "okmq: 1\nstreams: {other: {}}\n")
    assert "1 is not in the file and stays" in shown(seen)
    applied(owner, seen)
    assert Stream.objects.filter(name="orders").exists()
    seen = looked_at(owner, "okmq: 1\nstreams: {other: {}}\n", prune="on")
    assert "with everything in it" in shown(seen)
    assert "3 messages are removed, 3 bytes" in shown(seen)


def test_nothing_to_change_leaves_nothing_to_apply(owner: Client, workspace: Workspace) -> None:
    seen = looked_at(owner, exported(workspace))
    assert "Nothing to change." in shown(seen)
    assert 'value="apply"' not in shown(seen)


def test_who_may_not_apply_is_told_so_and_refused(viewer: Client, stranger: Client) -> None:
    page = shown(viewer.get(PAGE))
    assert "This needs the role admin." in page
    assert "<fieldset disabled>" in page
    for form in ({"do": "look"}, {"do": "apply"}):
        assert viewer.post(PAGE, {"text": TIGHTER, **form}).status_code == 403
    assert "stream orders" not in shown(stranger.get(f"{PAGE}download/"))
    seen = looked_at(stranger, "okmq: 1\nstreams: {theirs: {}}\n")
    applied(stranger, seen)
    assert Stream.objects.get(name="theirs").workspace.name == "elsewhere"
