"""The page that erases from a stream's history: said first, no more than was said, listed with how it ended. Spark is
not here: a test answers for it.
"""

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client

from dashboard.views import stream_erasures
from streams import store
from streams.access import ROLE_SCOPES, SYSTEM, Actor, Caller
from streams.log import groups
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Erasure, Event, Query, Replay, Stream
from streams.services import erasures as service
from streams.services import queries
from streams.services.groups import group_create
from streams.services.messages import message_delete
from streams.services.streams import stream_delete
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import sent_back

PAGE = "/streams/orders/history/erasures/"
OF_ANN = {"what": "key", "at": "ann.1"}
OF_TWO = {"what": "offset", "at": "2"}


@pytest.fixture
def stream(make_stream: MakeStream) -> Stream:
    """Four messages, of which the second and the fourth have the key ``ann.1``."""
    made = make_stream("orders")
    more(made, "bob", "ann.1", "bob", "ann.1")
    return made


def more(stream: Stream, *keys: str) -> None:
    batch = [NewMessage(id=f"{len(keys)}-{n}", body=b"1", key=key) for n, key in enumerate(keys)]
    store.log().run(append(stream.stream_id, batch))


def spark_answers(messages: int) -> None:
    query = queries.query_take()
    assert query is not None
    queries.query_answer(query, columns=[("messages", "bigint")], rows=[f"[{messages}]"], truncated=False)


def counted(client: Client, asked: dict[str, str], *, messages: int) -> Any:
    """The preview of an erasure, once Spark has counted."""
    client.post(PAGE, asked)
    spark_answers(messages)
    return client.post(PAGE, asked)


def erased(client: Client, shown: Any, asked: dict[str, str], **typed: str) -> Any:
    return client.post(PAGE, {**asked, **sent_back(shown), **typed, "erase": "1"})


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", answer.content.decode())))


def test_what_would_go_is_said_before_it_is_asked_for(owner: Client, stream: Stream) -> None:
    for name, dead in (("billing", [1, 2]), ("mail", [2, 4])):
        group_create(stream, name=name, settings={}, actor=SYSTEM)
        store.log().run(groups.fetch(stream.stream_id, name, limit=10))
        store.log().run(groups.term(stream.stream_id, name, "offsets", dead, reason="bad"))
    first = owner.post(PAGE, OF_ANN)
    assert first.status_code == 200
    assert "Spark counts how many messages the history has of it." in text_of(first)
    assert 'hx-trigger="okmq:second from:document"' in first.content.decode()
    assert 'name="erase"' not in first.content.decode(), "nothing is erased that was not counted"
    spark_answers(7)
    part = owner.post(PAGE, OF_ANN, headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode()
    text = text_of(part)
    for said in (
        "This erases 7 messages from the history.",
        "1 dead letter of group billing is deleted.",
        "2 dead letters of group mail are deleted.",
        "2 messages are still in the stream and stay there.",
        "It cannot be undone.",
        "Erase 7 messages",
    ):
        assert said in text
    assert "/streams/orders/purge/?what=key&amp;at=ann.1" in part.content.decode()
    assert not Erasure.objects.exists()
    assert erased(owner, part, OF_ANN).status_code == 302
    erasure = Erasure.objects.get()
    assert (erasure.key, erasure.offset, erasure.stream_id) == ("ann.1", None, stream.stream_id)
    (event,) = Event.objects.filter(kind="history.erasure_requested")
    assert (event.actor, event.stream) == ("owner", "orders")
    page = owner.get(PAGE)
    assert "Erasure" in text_of(page)
    assert f'href="/streams/orders/activity/?before={event.id + 1}"' in page.content.decode()
    assert "ann.1" not in page.content.decode()


def test_one_message_is_erased_by_its_offset_and_leads_to_its_deletion(owner: Client, stream: Stream) -> None:
    shown = counted(owner, {**OF_TWO, "at": " 1,2 "}, messages=0)
    assert shown.context["form"].wanted() == {"offset": 12}
    shown = counted(owner, OF_TWO, messages=1)
    assert 'href="/streams/orders/messages/2/delete/"' in shown.content.decode()
    message_delete(stream, offset=2, actor=SYSTEM)
    again = owner.post(PAGE, OF_TWO)
    assert "still in the stream" not in text_of(again)
    assert "can still be restored are not reached" in text_of(again)
    assert erased(owner, again, OF_TWO).status_code == 302
    assert Erasure.objects.get().offset == 2


def test_more_than_was_shown_is_asked_again(owner: Client, stream: Stream) -> None:
    shown = counted(owner, OF_ANN, messages=2)
    more(stream, "eve", "ann.1", "ann.1")
    again = erased(owner, shown, OF_ANN)
    assert again.status_code == 409
    assert "Nothing was erased: more would be erased than previewed." in text_of(again)
    assert "This erases 4 messages from the history." in text_of(again)
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=10))
    store.log().run(groups.term(stream.stream_id, "billing", "offsets", [2], reason="bad"))
    with_letters = erased(owner, again, OF_ANN)
    assert with_letters.status_code == 409
    assert not Erasure.objects.exists()
    assert erased(owner, with_letters, OF_ANN).status_code == 302


def test_what_is_published_after_it_was_shown_is_not_meant(
    owner: Client, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = counted(owner, OF_ANN, messages=2)
    assert "up to offset 4" in text_of(shown)
    real = service.erasure_request

    def published_before(*args: Any, **asked: Any) -> Erasure:
        more(stream, "ann.1", "ann.1", "ann.1")
        return real(*args, **asked)

    monkeypatch.setattr(stream_erasures, "erasure_request", published_before)
    assert erased(owner, shown, OF_ANN).status_code == 302
    assert Erasure.objects.get().up_to == 4
    assert "up to offset 4" in text_of(owner.get(PAGE))


def test_a_form_that_does_not_say_how_far_it_was_shown_is_asked_again(owner: Client, stream: Stream) -> None:
    shown = counted(owner, OF_ANN, messages=2)
    without = {name: value for name, value in sent_back(shown).items() if name != "seen_up_to"}
    answer = owner.post(PAGE, {**OF_ANN, **without, "erase": "1"})
    assert (answer.status_code, Erasure.objects.count()) == (409, 0)


def test_what_is_not_counted_any_more_is_counted_again(owner: Client, stream: Stream) -> None:
    shown = counted(owner, OF_ANN, messages=2)
    Query.objects.all().delete()
    again = erased(owner, shown, OF_ANN)
    assert (again.status_code, Erasure.objects.count()) == (409, 0)
    assert "Nothing was erased: the history is being counted again." in text_of(again)
    spark_answers(2)
    owner.post(PAGE, {**OF_ANN, "anew": "1"})
    assert Query.objects.filter(state="queued").count() == 1


@pytest.mark.parametrize(
    ("labels", "messages", "phrase"),
    [({}, 999, ""), ({}, 1000, "orders"), ({"env": "production"}, 1, "orders"), ({}, None, "orders")],
    ids=["a little", "much", "production", "not counted"],
)
def test_the_name_is_typed_where_it_is_much_or_production_or_not_known(
    owner: Client, make_stream: MakeStream, labels: dict[str, str], messages: int | None, phrase: str
) -> None:
    make_stream("orders", labels=labels)
    owner.post(PAGE, OF_ANN)
    if messages is None:
        queries.queries_refuse(reason="Java is missing.")
    else:
        spark_answers(messages)
    shown = owner.post(PAGE, OF_ANN)
    assert shown.context["effect"].phrase == phrase
    assert ("could not be counted: Java is missing." in text_of(shown)) is (messages is None)
    if phrase:
        wrong = erased(owner, shown, OF_ANN, confirm="order")
        assert (wrong.status_code, Erasure.objects.count()) == (422, 0)
        assert "That does not match. Nothing was done." in text_of(wrong)
        assert 'value="order"' in wrong.content.decode()
        shown = wrong
    assert erased(owner, shown, OF_ANN, confirm=phrase).status_code == 302


@pytest.mark.parametrize("asked", [OF_ANN, OF_TWO], ids=["key", "offset"])
def test_where_there_is_nothing_nothing_can_be_asked_for(
    owner: Client, make_stream: MakeStream, asked: dict[str, str]
) -> None:
    make_stream("orders")
    shown = counted(owner, asked, messages=0)
    assert "The history has no such message." in text_of(shown)
    assert "No group keeps a dead letter of it." in text_of(shown)
    assert 'name="erase"' not in shown.content.decode()


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"what": "offset", "at": "0"}, "Enter an offset: a whole number from 1."),
        ({"what": "offset", "at": "1²"}, "Enter an offset: a whole number from 1."),
        ({"what": "offset", "at": "9" * 30}, "Enter an offset: a whole number from 1."),
        ({"what": "key", "at": "eu.*"}, "Expected dot-separated tokens"),
        ({"what": "key", "at": ""}, "This field is required."),
        ({"what": "all", "at": "x"}, "Select a valid choice."),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_stays(
    owner: Client, stream: Stream, asked: dict[str, str], fault: str
) -> None:
    answer = owner.post(PAGE, {**asked, "erase": "1"})
    assert answer.status_code == 422
    assert fault in text_of(answer)
    assert "invalid-feedback" in answer.content.decode()
    assert not asked["at"] or f'value="{asked["at"]}"' in answer.content.decode()
    assert not Query.objects.exists()


def test_what_cannot_be_erased_says_why(owner: Client, make_stream: MakeStream, settings: Any) -> None:
    make_stream("orders", deny_delete=True)
    page = owner.get(PAGE)
    assert "Deleting messages of this stream is denied, and so is erasing" in text_of(page)
    refused = owner.post(PAGE, OF_ANN)
    assert (refused.status_code, refused.context["form"].non_field_errors()) == (
        422,
        ["Stream 'orders' has deny_delete set."],
    )
    make_stream("other")
    settings.ENV = replace(django_settings.ENV, history=False)
    assert "The history is switched off" in text_of(owner.get("/streams/other/history/erasures/"))
    off = owner.post("/streams/other/history/erasures/", OF_ANN)
    assert (off.status_code, "The history is switched off" in text_of(off)) == (422, True)


def test_a_form_of_a_stream_that_had_the_name_before_erases_nothing(
    owner: Client, stream: Stream, make_stream: MakeStream
) -> None:
    shown = counted(owner, OF_TWO, messages=1)
    stream_delete(stream, actor=SYSTEM)
    more(make_stream("orders"), "bob", "ann.1")
    answer = erased(owner, shown, OF_TWO)
    assert (answer.status_code, Erasure.objects.count()) == (409, 0)
    assert "another one with the same name" in text_of(answer)


def test_one_that_waits_for_the_same_is_named(owner: Client, stream: Stream) -> None:
    asked = caller_of(stream)
    of_key = service.erasure_request(asked, stream="orders", key="ann.1")
    of_two = service.erasure_request(asked, stream="orders", offset=2)
    service.erasure_request(asked, stream="orders", key="bob")
    more(stream, "ann.1")
    text = text_of(counted(owner, OF_ANN, messages=3))
    said = f"Erasure #{of_key.pk} of the same is not done yet: it takes what is counted here up to offset 4."
    assert said in text
    assert text.count("is not done yet") == 1
    shown = counted(owner, OF_TWO, messages=1)
    assert f"Erasure #{of_two.pk} of the same is not done yet: it takes what is counted here." in text_of(
        shown
    )
    for each in service.erasures_take():
        service.erasure_done(each, messages=1, through=4)
    assert "is not done yet" not in text_of(owner.post(PAGE, OF_ANN))


def test_copies_that_stay_are_named(owner: Client, stream: Stream) -> None:
    for n in range(7):
        Replay.objects.create(
            workspace=stream.workspace,
            source="orders",
            source_id=stream.stream_id,
            target=f"again-{n}",
            target_id="x",
            stored=1,
            first=1,
            last=4,
        )
    text = text_of(counted(owner, OF_ANN, messages=2))
    newest = Replay.objects.latest("id").pk
    assert f"Copies that replay #{newest} may have published to again-6 stay." in text
    assert "So do those of 2 more replays." in text


def test_the_list_says_how_each_stands_who_asked_and_why_one_failed(owner: Client, stream: Stream) -> None:
    assert "Nothing was ever erased from the history of this stream." in text_of(owner.get(PAGE))
    for asked in ({"offset": 2}, {"key": "ann.1"}, {"offset": 3}):
        service.erasure_request(caller_of(stream), stream="orders", **asked)
    done, running, failed = service.erasures_take()
    service.erasure_of_letters(done)
    service.erasure_done(done, messages=1_234, through=5_678)
    service.erasures_progress([running], 0.25)
    service.erasure_failed(failed, error="The disk <b>is</b> full.")
    service.erasure_request(caller_of(stream), stream="orders", deleted=True)
    page = owner.get(PAGE)
    text, html = text_of(page), page.content.decode()
    for said in (
        "offset 2",
        "1,234",
        "looked through to offset 5,678",
        "key with SHA-256",
        "of deleted streams",
    ):
        assert said in text, said
    assert 'value="0.250"' in html
    assert "The disk <b>is</b> full." in text
    assert f'href="{PAGE}?what=offset&amp;at=3"' in html
    assert html.count("Event #") == 6
    assert "okmq:second from:document" in html
    part = owner.get(PAGE, headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode()
    assert "1,234" in text_of(part)


LONG = "The files could not be written anew: " + "a cause of it; " * 60 + "and the last word."


def opened(page: str, erasure: int) -> str:
    """Where the link below an error leads; empty where there is none."""
    found = re.search(rf'id="erasure-{erasure}-error"[^>]* href="([^"#]*)#erasures"', page)
    return unescape(found[1]) if found else ""


def test_the_whole_error_is_opened_and_stays_open(
    owner: Client, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_erasures, "PAGE_SIZE", 2)
    for offset in range(1, 5):
        service.erasure_request(caller_of(stream), stream="orders", offset=offset)
    failed, short, *_ = service.erasures_take()
    service.erasure_failed(failed, error=LONG)
    service.erasure_failed(short, error="Disk is full.")
    page = owner.get(PAGE, {"page": 2}).content.decode()
    assert LONG not in page
    assert LONG[:290] in page
    assert not opened(page, short.pk)
    whole = owner.get(opened(page, failed.pk)).content.decode()
    assert LONG in whole
    asked = re.search(rf'hx-get="({PAGE}[^"]*)"', whole)
    assert asked
    again = owner.get(unescape(asked[1]), headers={"HX-Request": "true"}).content.decode()
    assert LONG in again
    less = opened(again, failed.pk)
    assert less == f"{PAGE}?page=2"
    assert LONG not in owner.get(less).content.decode()


def caller_of(stream: Stream) -> Caller:
    return Caller(stream.workspace, ROLE_SCOPES["admin"], Actor("somebody"))


def test_many_come_in_pages(owner: Client, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_erasures, "PAGE_SIZE", 2)
    for offset in range(1, 6):
        service.erasure_request(caller_of(stream), stream="orders", offset=offset)
    shown = [
        [each.offset for each, _ in owner.get(PAGE, {"page": n}).context["erasures"]] for n in (1, 2, 3, 9)
    ]
    assert shown == [[5, 4], [3, 2], [1], [1]]
    middle = owner.get(PAGE, {"page": 2}).content.decode()
    assert f'hx-get="{PAGE}?page=2"' in middle
    assert f'href="{PAGE}?page=1"' in middle
    assert f'href="{PAGE}?page=3"' in middle


def test_of_other_workspaces_and_streams_nothing_is_listed(
    owner: Client, stranger: Client, stream: Stream, make_stream: MakeStream, elsewhere: Any
) -> None:
    service.erasure_request(caller_of(stream), stream="orders", offset=1)
    make_stream("orders", within=elsewhere)
    make_stream("other")
    assert stranger.get(PAGE).context["erasures"] == []
    assert owner.get("/streams/other/history/erasures/").context["erasures"] == []
    ended = service.erasures_take()
    service.erasure_failed(ended[0], error="no")
    stream_delete(stream, actor=SYSTEM)
    make_stream("orders")
    assert "of an earlier stream with this name" in text_of(owner.get(PAGE))


def test_pages_lead_there_or_say_which_role_it_needs(owner: Client, viewer: Client, stream: Stream) -> None:
    message_delete(stream, offset=3, actor=SYSTEM)
    for path, address in (
        ("/streams/orders/history/", PAGE),
        ("/streams/orders/messages/2/", f"{PAGE}?what=offset&amp;at=2"),
        ("/streams/orders/messages/3/", f"{PAGE}?what=offset&amp;at=3"),
    ):
        assert f'href="{address}"' in owner.get(path).content.decode()
        refused = viewer.get(path).content.decode()
        assert PAGE not in refused
        assert "This needs the role admin." in refused
    prefilled = owner.get(PAGE, {"what": "offset", "at": "3"}).content.decode()
    assert 'value="3"' in prefilled
    hits = owner.get("/search/", {"q": "orders erase"}).context["hits"]
    assert [hit.url for hit in hits] == [PAGE]
    assert viewer.get(PAGE).status_code == 403


def test_the_page_as_calls_previews_and_asks(owner: Client, stream: Stream) -> None:
    assert "curl http://testserver/api/v1/analytics/erasures" in unescape(owner.get(PAGE).content.decode())
    said = unescape(owner.post(PAGE, OF_ANN).content.decode())
    assert '{"stream": "orders", "key": "ann.1", "dry_run": true}' in said
    assert '{"stream": "orders", "key": "ann.1"}' in said
    assert said.count("'POST'") == 2, "and the same in Python"
