"""What comes from outside is text on every page and in every file: no element, no attribute, no formula of its own.

A browser is asked the same of fewer words in ``tests/e2e/test_hostile.py``.
"""

import asyncio
import csv
import io
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import pytest
from django.test import Client

from streams import store
from streams.access import SYSTEM
from streams.log import groups
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Erasure, Policy, Query, Stream, Workspace
from streams.services import queries as queries_service
from streams.services.alerts import rule_create
from streams.services.groups import group_create
from tests.dashboard.conftest import MakeStream
from tests.hostile import HOSTILE

FORBIDDEN = {"iframe", "object", "embed", "base", "style", "math", "animate", "frame"}
AT = "/streams/orders"
GROUP = f"{AT}/groups/billing"


class Wrongs(HTMLParser):
    """What a page holds that no template of ours writes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        if tag in FORBIDDEN:
            self.found.append(f"<{tag}>")
        if (
            tag == "script"
            and held.get("type") != "application/json"
            and not held.get("src", "").startswith("/static/")
        ):
            self.found.append(f"<script {held}>")
        if tag == "meta" and held.get("http-equiv"):
            self.found.append(f"<meta {held}>")
        for name, value in held.items():
            if name.startswith(("on", "hx-on")) or name in {"style", "srcdoc"}:
                self.found.append(f"<{tag} {name}>")
            is_address = name in {
                "href",
                "src",
                "action",
                "formaction",
                "data",
                "hx-get",
                "hx-post",
                "xlink:href",
            }
            if is_address and not value.startswith(("/", "?", "#", "data:image/")) and value:
                self.found.append(f"<{tag} {name}={value[:60]}>")
            if is_address and value.startswith(("//", "/\\")):
                self.found.append(f"<{tag} {name}={value[:60]}>")


def wrongs(page: str) -> list[str]:
    parser = Wrongs()
    parser.feed(page)
    parser.close()
    return parser.found


@pytest.mark.parametrize("text", [text for text in HOSTILE if "<" in text[:5]][:12], ids=range(12))
def test_the_parser_finds_what_is_not_escaped(text: str) -> None:
    assert wrongs(f"<!doctype html><main><p>{text}</p></main>") or "<!--" in text


@pytest.fixture
def held(workspace: Workspace, make_stream: MakeStream) -> Stream:
    """A stream whose messages, labels, descriptions, groups, consumers and dead letters are hostile."""
    stream = make_stream("orders", labels={"a": HOSTILE[0][:60]}, description=HOSTILE[7] + HOSTILE[34])
    log = store.log()
    messages = [
        NewMessage(id=f"{n}", body=_json(text), key=_key(text), headers=_json({text[:200]: text[:200]}))
        for n, text in enumerate(HOSTILE)
    ]
    log.run(append(stream.stream_id, messages))
    group, _ = group_create(stream, name="billing", settings={"description": HOSTILE[9]}, actor=SYSTEM)
    for text in HOSTILE:
        got = log.run(groups.fetch(stream.stream_id, group.name, limit=1, consumer=_short(text)))
        leases = [each.lease for each in got.deliveries]
        if len(text) % 2:
            log.run(groups.term(stream.stream_id, group.name, "leases", leases, reason=_short(text)))
    Policy.objects.create(workspace=workspace, name="p", description=HOSTILE[10])
    return stream


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _short(text: str) -> str:
    return text[:200]


def _key(text: str) -> str:
    """As much of it as a key may hold."""
    kept = "".join(letter for letter in text if letter.isprintable() and letter not in " *>")
    return ".".join(part for part in kept[:200].split(".") if part)


PAGES = (
    "/",
    "/streams/",
    f"{AT}/?start=oldest",
    f"{AT}/publish/?like=9",
    f"{AT}/?start=oldest&cols=.,.a,.b",
    f"{AT}/publish/many/",
    f"{AT}/rates/",
    f"{AT}/tail/",
    "/tail/?streams=*",
    "/tail/?after:orders=0",
    f"{AT}/groups/",
    f"{GROUP}/",
    f"{GROUP}/?position=earliest",
    f"{GROUP}/pending/",
    f"{GROUP}/dead-letters/",
    f"{GROUP}/settings/",
    f"{AT}/retention/",
    f"{AT}/retention/?discard=old&max_messages=1",
    f"{AT}/purge/",
    f"{AT}/activity/",
    f"{AT}/history/erasures/",
    f"{AT}/settings/",
    "/streams/_bulk/?do=purge&stream=orders",
    "/events/",
    "/alerts/",
    "/sql/",
    "/search/?q=o",
    "/settings/tokens/",
    "/settings/people/",
)


def pages_of_messages() -> Iterator[str]:
    for offset in range(1, len(HOSTILE) + 1):
        yield f"{AT}/messages/{offset}/"
        if len(HOSTILE[offset - 1]) % 2:
            yield f"{GROUP}/dead-letters/{offset}/"


@pytest.mark.long
def test_what_is_stored_is_text_on_every_page(owner: Client, held: Stream) -> None:
    for text in HOSTILE:
        owner.post(
            "/filters/save/", {"page": "streams", "name": text[:60], "query": urlencode({"name": text[:50]})}
        )
        owner.post("/settings/tokens/", {"name": text[:100], "scopes": ["read"]})
        Erasure.objects.create(
            workspace=held.workspace,
            stream="orders",
            stream_id="x",
            requested_by=_short(text),
            error=text,
            offset=1,
        )
        owner.post("/sql/", {"sql": f"SELECT '{text[:300]}'", "limit": 9, "name": text[:100], "save": "1"})
    for page in (*PAGES, *pages_of_messages()):
        answer = owner.get(page)
        assert answer.status_code == 200, page
        assert wrongs(answer.content.decode()) == [], page
        assert wrongs_of_file(saved(owner, page)) == [], page


def saved(owner: Client, page: str) -> str:
    answer = owner.get(f"{page}{'&' if '?' in page else '?'}snapshot=1")
    assert answer.headers["Content-Disposition"].startswith("attachment"), page
    return answer.content.decode()


def wrongs_of_file(text: str) -> list[str]:
    """As ``wrongs``, of a page that was saved: its links name the server, and nothing in it does anything."""
    body = text.partition("</head>")[2].replace('"http://testserver/', '"/')
    return wrongs(body) + [tag for tag in ("<script", "<form", "<input", "<button") if tag in body]


# path, and the parameters of its query string that end up on the page
ASKED = (
    ("/streams/", ("name", "label", "sort", "page", "size")),
    (f"{AT}/", ("match", "key", "header", "cols", "start", "at", "until")),
    (f"{AT}/tail/", ("match", "key", "header", "cols", "ring")),
    ("/tail/", ("streams", "stream", "match", "key", "header", "cols", "ring")),
    (f"{AT}/groups/", ("group", "sort", "page")),
    (f"{GROUP}/", ("position", "at", "range", "since", "until")),
    (f"{GROUP}/dead-letters/", ("reason", "after")),
    (f"{AT}/rates/", ("range", "since", "until")),
    (f"{GROUP}/pending/", ("deliveries", "age", "consumer", "after")),
    (f"{AT}/retention/", ("discard", "ttl", "max_messages", "max_bytes", "retention", "policy")),
    (f"{AT}/purge/", ("what", "at")),
    (f"{AT}/history/", ("range", "step")),
    (f"{AT}/history/erasures/", ("what", "at", "page")),
    (f"{AT}/publish/", ("like",)),
    ("/events/", ("actor", "kind", "stream", "group", "since", "until", "before")),
    ("/sql/", ("saved", "stream")),
    ("/search/", ("q",)),
    ("/login/", ("next",)),
    ("/streams/_bulk/", ("do", "stream")),
)
# path, and the fields of its form: what is refused is shown again
FILLED = (
    ("/streams/_new/", ("name", "description", "ttl", "max_messages", "max_bytes", "discard", "storage")),
    (f"{AT}/groups/", ("name", "start_from", "at", "ack_wait", "filter_keys", "description", "backoff")),
    (f"{AT}/publish/", ("id", "key", "headers", "body")),
    (f"{AT}/publish/many/", ("each", "begin", "lines", "ids", "so_far_line", "so_far_first")),
    (f"{AT}/retention/", ("discard", "ttl", "max_messages", "confirm")),
    (f"{AT}/purge/", ("what", "at", "confirm")),
    (f"{AT}/history/erasures/", ("what", "at", "confirm")),
    (f"{GROUP}/settings/", ("ack_wait", "filter_keys", "max_deliver", "inactive_after")),
    (f"{GROUP}/pending/settle/", ("what", "scope", "offset", "delay", "reason")),
    (f"{GROUP}/dead-letters/bulk/", ("do", "scope", "offset", "reason")),
    ("/alerts/", ("name", "stream", "group", "limit", "webhook_url", "email", "watch")),
    ("/alerts/lags/", ("stream", "group", "limit", "webhook_url", "email", "muted", "mute_reason", "watch")),
    ("/sql/", ("sql", "limit", "name")),
    ("/settings/people/", ("name", "role", "streams")),
    ("/settings/people/owner/", ("streams",)),
    ("/settings/tokens/", ("name", "streams", "expires")),
    ("/settings/workspaces/", ("name", "plan")),
    ("/settings/configuration/", ("text", "prune")),
)


def is_text(path: str, answer: Any) -> None:
    assert answer.status_code < 500, path
    if answer.headers["Content-Type"].startswith("text/html"):
        assert wrongs(answer.content.decode()) == [], path
    led_to = urlsplit(urljoin(f"http://testserver{path}", answer.headers.get("Location", "")))
    assert (led_to.scheme, led_to.netloc) == ("http", "testserver"), path


@pytest.fixture
def plain(make_stream: MakeStream) -> None:
    orders = make_stream("orders", bodies=[b"1"])
    group_create(orders, name="billing", settings={}, actor=SYSTEM)
    lags = {"stream": "orders", "watch": "lag", "limit": 1.0}
    rule_create(orders.workspace, name="lags", settings=lags, actor=SYSTEM)


@pytest.mark.long
@pytest.mark.parametrize(("path", "names"), ASKED)
def test_what_is_asked_is_text_in_the_answer(
    owner: Client, plain: None, path: str, names: tuple[str, ...]
) -> None:
    for text in HOSTILE:
        is_text(path, owner.get(f"{path}?{urlencode(dict.fromkeys(names, text))}"))


@pytest.mark.long
@pytest.mark.parametrize(("path", "names"), FILLED)
def test_what_is_filled_in_is_text_in_the_answer(
    owner: Client, plain: None, path: str, names: tuple[str, ...]
) -> None:
    for text in HOSTILE:
        is_text(path, owner.post(path, dict.fromkeys(names, text)))


def cells(answer: Any) -> list[str]:
    parts: Any = answer.streaming_content if answer.streaming else [answer.content]

    async def collected() -> list[bytes]:
        return [part async for part in parts]

    text = b"".join(asyncio.run(collected()) if hasattr(parts, "__aiter__") else parts).decode()
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


def test_no_cell_of_a_file_is_a_formula(owner: Client, held: Stream) -> None:
    columns = [("n", "string"), (HOSTILE[29], "string")]
    owner.post("/sql/", {"sql": "SELECT 1", "limit": 100, "ask": ""})
    query = Query.objects.latest("id")
    queries_service.query_answer(
        query, columns=columns, rows=[_json([text, text]).decode() for text in HOSTILE], truncated=False
    )
    for path in (
        "/streams/_export/",
        f"{AT}/export/?format=csv",
        "/events/export/?format=csv",
        f"/sql/{query.pk}/csv/",
    ):
        found = cells(owner.get(path))
        assert len(found) > 5, path
        for cell in found:
            assert not cell.startswith(("=", "+", "@", "\t", "\r")), (path, cell)
            assert not cell.startswith("-") or cell[1:].replace(".", "").isdigit(), (path, cell)
