"""Pages of messages show what is coded in a body, say so, and show it as it was sent when asked."""

import base64
import gzip
import json

import pytest
from django.test import Client

from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import bury, make_group
from tests.dashboard.test_exports import content

CODED = json.dumps(base64.b64encode(gzip.compress(b'{"id":9007199254740993,"n":"<i>"}')).decode()).encode()
PARTS = {"HX-Request": "true"}


@pytest.mark.parametrize("page", ["", "?open=1", "messages/1/", "tail/?after=0"])
def test_a_page_shows_what_is_coded_and_says_how(owner: Client, make_stream: MakeStream, page: str) -> None:
    make_stream("orders", bodies=[CODED])
    part = PARTS if "tail" in page else {}
    shown = owner.get(f"/streams/orders/{page}", headers=part).content.decode()
    assert "9007199254740993" in shown
    assert "base64, gzip, JSON" in shown
    assert "<i>" not in shown


def test_a_message_offers_to_be_shown_as_it_was_sent(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[CODED])
    shown = owner.get("/streams/orders/messages/1/").content.decode()
    assert 'href="/streams/orders/messages/1/?decode=raw">show raw' in shown
    raw = owner.get("/streams/orders/messages/1/?decode=raw").content.decode()
    assert "9007199254740993" not in raw
    assert 'href="/streams/orders/messages/1/?decode=auto">decode' in raw
    assert owner.get("/streams/orders/messages/1/raw/").content == CODED


def test_a_choice_is_remembered_for_the_stream_and_no_other(owner: Client, make_stream: MakeStream) -> None:
    for name in ("orders", "orders-2"):
        make_stream(name, bodies=[CODED])
    owner.get("/streams/orders/?decode=raw")
    for page in ("/streams/orders/", "/streams/orders/messages/1/"):
        cookie = owner.cookies["okmq-decode"]
        assert page.startswith(cookie["path"])
        assert "9007199254740993" not in owner.get(page).content.decode()
    assert not "/streams/orders-2/".startswith(owner.cookies["okmq-decode"]["path"])
    owner.get("/streams/orders/?decode=")
    assert "9007199254740993" in owner.get("/streams/orders/").content.decode()


def test_a_body_that_cannot_be_decoded_as_asked_is_shown_as_sent_and_says_why(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders", bodies=[b'"plain, and <i>"', CODED])
    shown = owner.get("/streams/orders/?decode=base64+gzip").content.decode()
    assert "not base64: it contains other characters" in shown
    assert "plain, and &lt;i&gt;" in shown
    assert "9007199254740993" in shown
    page = owner.get("/streams/orders/messages/1/?decode=base64+gzip").content.decode()
    assert "Shown as sent: could not be decoded as" in page


def test_a_reading_that_there_is_not_is_said_in_the_form(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[CODED])
    answer = owner.get("/streams/orders/?decode=base46")
    assert answer.status_code == 422
    assert "is not auto, raw" in answer.content.decode()
    assert owner.get("/streams/orders/messages/1/?decode=base46").status_code == 200


def test_columns_and_filters_look_into_what_is_shown(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[CODED, b'{"id":5}', b'"text"'])
    answer = owner.get("/streams/orders/?match=.id+%3E+6&cols=.id")
    (row,) = answer.context["window"].rows
    assert [cell.text for cell in row.cells] == ["9007199254740993"]
    assert not owner.get("/streams/orders/?match=.id+%3E+6&decode=raw").context["window"].rows


def test_an_export_finds_what_the_page_finds_and_holds_what_was_sent(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders", bodies=[CODED, b'{"id":5}'])
    found = content(owner.get("/streams/orders/export/?match=.id+%3E+6&format=ndjson"))
    assert [json.loads(line)["body"] for line in found.splitlines()] == [json.loads(CODED)]


def test_bytes_that_are_no_text_are_shown_in_hexadecimal(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b'"//79/A=="'])
    shown = owner.get("/streams/orders/messages/1/?decode=base64").content.decode()
    assert "Decoded: base64, binary" in shown
    assert "ff fe fd fc" in shown


def test_a_dead_letter_is_read_as_its_stream_is(owner: Client, make_stream: MakeStream) -> None:
    bury(make_group(make_stream("orders", bodies=[CODED])), count=1)
    page = "/streams/orders/groups/billing/dead-letters/1/"
    assert "Decoded: base64, gzip, JSON" in owner.get(page).content.decode()
    assert "9007199254740993" not in owner.get(f"{page}?decode=raw").content.decode()
