"""One message from the form: as large as its stream takes."""

from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from dashboard.views.stream_publish import fresh_id
from streams import selectors
from streams.access import SYSTEM
from streams.models import Stream
from streams.services.streams import stream_change
from tests.dashboard.conftest import MakeStream

PAGE = "/streams/orders/publish/"
MIB = 1024 * 1024


def text_of(size_bytes: int) -> str:
    """JSON of so many bytes."""
    return f'"{"x" * (size_bytes - 2)}"'


def sent(client: Client, body: str, **fields: str) -> Any:
    return client.post(PAGE, {"id": fresh_id(), "key": "", "headers": "", "body": body} | fields)


def said(answer: Any) -> str:
    return " ".join(strip_tags(answer.content.decode()).split())


def newest(stream: Stream) -> bytes:
    return selectors.messages_from(stream, offset=0, limit=10)[-1].body


def test_the_form_takes_what_its_stream_takes_and_not_a_byte_more(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", max_message_bytes=4 * MIB)
    assert "up to 4.00 MiB" in said(owner.get(PAGE))
    assert sent(owner, text_of(4 * MIB)).status_code == 302
    assert len(newest(stream)) == 4 * MIB
    refused = sent(owner, text_of(4 * MIB + 1))
    assert refused.status_code == 422
    assert "4,194,305 bytes; the stream takes 4,194,304" in said(refused)


def test_a_body_is_measured_in_bytes(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", max_message_bytes=1024)
    assert sent(owner, f'"{"é" * 511}"').status_code == 302
    assert "1,026 bytes; the stream takes 1,024" in said(sent(owner, f'"{"é" * 512}"'))


def test_the_largest_body_of_all_is_taken_whatever_a_browser_makes_of_its_lines(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", max_message_bytes=16 * MIB)
    lines = "[" + "\n" * (16 * MIB - 3) + "1]"
    assert sent(owner, lines.replace("\n", "\r\n")).status_code == 302
    assert newest(stream) == lines.encode()


def test_the_form_is_sent_as_parts_in_which_a_byte_is_one(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert '<form method="post" enctype="multipart/form-data">' in owner.get(PAGE).content.decode()


def test_a_large_message_is_published_again(owner: Client, make_stream: MakeStream) -> None:
    body = text_of(MIB + 50_000)
    stream = make_stream("orders", bodies=[body.encode()], max_message_bytes=4 * MIB)
    page = owner.get(f"{PAGE}?like=1")
    assert page.status_code == 200
    assert page.context["form"]["body"].value() == body
    assert "larger than" not in said(page)
    assert sent(owner, body).status_code == 302
    assert newest(stream) == body.encode()


def test_where_the_stream_takes_it_no_longer_the_form_says_so_before_it_is_sent(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[text_of(2000).encode()])
    stream_change(stream, changes={"max_message_bytes": 1024}, actor=SYSTEM)
    page = said(owner.get(f"{PAGE}?like=1"))
    assert "The body has 2,000 bytes; the stream takes 1,024. Shorten it" in page


@pytest.mark.parametrize("size_mib", [1, 3])
def test_pasted_lines_are_taken_without_a_script(
    owner: Client, make_stream: MakeStream, size_mib: int
) -> None:
    stream = make_stream("orders", max_message_bytes=4 * MIB)
    form = {"each": "body", "begin": 1, "ids": "console-0123456789ab", "lines": text_of(size_mib * MIB)}
    assert owner.post(f"{PAGE}many/", form).status_code == 200
    assert len(newest(stream)) == size_mib * MIB
