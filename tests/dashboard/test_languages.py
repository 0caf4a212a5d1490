"""Who reads German is answered in German, and machines in English."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, Template
from django.test import Client
from django.utils import translation

from dashboard import json_faults, languages, quantities
from streams import store
from streams.access import SYSTEM
from streams.log import groups
from streams.models import Stream, Workspace
from streams.services.tokens import token_create
from tests.dashboard.conftest import MakeStream
from tests.dashboard.forms import confirmed
from tests.dashboard.groups.test_groups import BODIES, make_group


@pytest.mark.parametrize(
    ("choice", "browser", "language"),
    [
        (None, None, "en"),
        (None, "de-AT,de;q=0.9,en;q=0.8", "de"),
        (None, "fr-FR,fr;q=0.9,de;q=0.5", "de"),
        (None, "fr", "en"),
        ("browser", "de", "de"),
        ("en", "de", "en"),
        ("de", "en-US,en;q=0.9", "de"),
        ("../de", "xx-\x00, *;q=nan", "en"),
    ],
)
def test_the_choice_wins_over_the_browser(
    owner: Client, choice: str | None, browser: str | None, language: str
) -> None:
    if choice:
        owner.cookies[languages.CHOICE_COOKIE] = choice
    answer = owner.get("/streams/", headers={"Accept-Language": browser} if browser else None)
    assert f'<html lang="{language}"' in answer.content.decode()
    assert "Accept-Language" in answer["Vary"]


def test_who_is_not_logged_in_reads_their_language_too(client: Client) -> None:
    page = client.get("/login/", headers={"Accept-Language": "de"}).content.decode()
    assert "Das Passwort der Person admin wird beim ersten Start einmal ausgegeben." in page
    missing = client.get("/nowhere/", headers={"Accept-Language": "de"}).content.decode()
    assert "Nicht gefunden" in missing


def test_the_choice_is_remembered_and_shown(owner: Client) -> None:
    answer = owner.post("/language/", {"language": "de", "next": "/streams/?name=a"})
    assert answer["Location"] == "/streams/?name=a"
    assert '<html lang="de"' in owner.get("/streams/").content.decode()
    assert 'value="de" lang="de" aria-pressed="true"' in owner.get("/profile/").content.decode()
    owner.post("/language/", {"language": "browser"})
    assert '<html lang="en"' in owner.get("/streams/").content.decode()


def test_another_language_is_refused_with_a_sentence(owner: Client) -> None:
    answer = owner.post("/language/", {"language": "tlh"}, follow=True)
    assert "There is no such language." in answer.content.decode()
    assert languages.CHOICE_COOKIE not in owner.cookies


def test_machines_are_answered_in_english(
    owner: Client, make_stream: MakeStream, workspace: Workspace
) -> None:
    """Their readers match on sentences, and what one browser reads is not what all of them do."""
    token = token_create(workspace, name="reader", scopes=["read"], actor=SYSTEM)[1]
    make_group(make_stream("orders", bodies=BODIES))
    owner.post("/streams/orders/groups/billing/pause/", headers={"Accept-Language": "de"})
    german = {"Accept-Language": "de", "Authorization": f"Bearer {token}", "Cookie": "okmq_language=de"}
    found = Client().get("/api/v1/streams/orders/groups/billing/", headers=german).json()
    assert found["health"]["reason"] == "Paused; acknowledgements still count."
    events = Client().get("/api/v1/events/?kind=group.paused", headers=german).json()
    assert "pausiert" not in str(events)
    assert "wurde" not in str(events)


def test_a_language_ends_with_its_answer(owner: Client) -> None:
    owner.get("/streams/", headers={"Accept-Language": "de"})
    assert translation.get_language() == "en"


def test_numbers_are_written_one_way_in_every_language() -> None:
    """What is read on one page is typed on another, and pasted into a call of the API."""
    with translation.override("de"):
        assert Template("{{ value }} {{ value|floatformat:'2g' }}").render(Context({"value": 1234.5})) == (
            "1234.5 1,234.50"
        )


@pytest.mark.parametrize("written", ["vor 15 min", "Vor 15min", "15 min ago"])
def test_an_age_is_taken_as_it_is_read(written: str) -> None:
    now = datetime(2026, 11, 26, 8, tzinfo=UTC)
    with translation.override("de"):
        assert quantities.parse_moment(written, now=now) == now - timedelta(minutes=15)
    with translation.override("en"), pytest.raises(ValueError, match="Enter a time"):
        quantities.parse_moment("vor 15 min", now=now)


@pytest.mark.parametrize("written", ["jetzt", "Jetzt ", "now"])
def test_now_is_taken_as_a_field_suggests_it(written: str) -> None:
    now = datetime(2026, 11, 26, 8, tzinfo=UTC)
    with translation.override("de"):
        assert quantities.parse_moment(written, now=now) == now
    with translation.override("en"), pytest.raises(ValueError, match="Enter a time"):
        quantities.parse_moment("jetzt", now=now)


@pytest.mark.parametrize("written", ["vor", "vor ", "vor kurzem", "ago", "vor -1 min"])
def test_what_is_no_age_is_refused_in_the_language(written: str) -> None:
    with translation.override("de"), pytest.raises(ValueError, match="Einen Zeitpunkt angeben"):
        quantities.parse_moment(written, now=datetime(2026, 11, 26, 8, tzinfo=UTC))


def test_what_is_stored_and_what_files_hold_is_english(
    owner: Client, make_stream: MakeStream, workspace: Workspace
) -> None:
    make_group(make_stream("orders", bodies=BODIES))
    store.log().run(groups.fetch(Stream.objects.get(name="orders").stream_id, "billing", limit=1))
    owner.cookies[languages.CHOICE_COOKIE] = "de"
    asked = {"what": "term", "scope": "chosen", "offset": [1]}
    confirmed(owner, "/streams/orders/groups/billing/pending/settle/", asked)
    token = token_create(workspace, name="reader", scopes=["consume", "read"], actor=SYSTEM)[1]
    letters = Client().get(
        "/api/v1/streams/orders/groups/billing/dead-letters", headers={"Authorization": f"Bearer {token}"}
    )
    assert [letter["reason"] for letter in letters.json()] == ["terminated by hand"]
    assert b"Messungen" not in owner.get("/groups/_export/").content


@pytest.mark.parametrize("asked", ["orders retention", "orders aufbewahrung", "orders Tail", "new stream"])
def test_the_palette_knows_the_words_of_the_page_and_of_the_documentation(
    owner: Client, make_stream: MakeStream, asked: str
) -> None:
    make_stream("orders")
    owner.cookies[languages.CHOICE_COOKIE] = "de"
    page = owner.get("/search/", {"q": asked}).content.decode()
    wanted = "Neuer Stream" if asked == "new stream" else "orders"
    assert wanted in page


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        ("/streams/orders/?decode=base64", None, "kein base64: es enthält andere Zeichen"),
        (
            "/streams/orders/?decode=rot13",
            None,
            "„rot13“ ist weder auto noch raw noch eine Folge aus base64, hex",
        ),
        ("/streams/orders/?decode=hex+hex+hex+hex+hex", None, "Höchstens 4 Schritte lassen sich verketten."),
        ("/streams/orders/?key=a..b", None, "Erwartet werden durch Punkte getrennte Teile"),
        ("/streams/?regex=1&name=(", None, "Das ist kein regulärer Ausdruck"),
        ("/streams/orders/publish/", {"body": "NaN"}, "NaN ist kein JSON."),
        (
            "/streams/orders/publish/",
            {"body": '{"a": 1,\n\t"b" 2}'},
            "Zeile 2, Spalte 6: hier wird ein Doppelpunkt erwartet.",
        ),
        ("/streams/orders/settings/", {"labels": "7:x"}, "Der Name eines Labels darf keine Zahl sein."),
    ],
)
def test_what_is_wrong_is_said_in_the_language_of_the_page(
    owner: Client, make_stream: MakeStream, path: str, form: dict[str, str] | None, said: str
) -> None:
    make_stream("orders", bodies=[b'"not base64!"'])
    owner.cookies[languages.CHOICE_COOKIE] = "de"
    answer = owner.get(path) if form is None else owner.post(path, form)
    assert said in answer.content.decode()


def test_what_is_wrong_is_said_to_machines_in_english(make_stream: MakeStream, workspace: Workspace) -> None:
    make_stream("orders", bodies=[b"1"])
    token = token_create(workspace, name="all", scopes=["read", "manage"], actor=SYSTEM)[1]
    german = {"Accept-Language": "de", "Authorization": f"Bearer {token}", "Cookie": "okmq_language=de"}
    refused = Client().patch(
        "/api/v1/streams/orders/",
        {"labels": {"7": "x"}, "keys": ["a..b"]},
        content_type="application/json",
        headers=german,
    )
    assert "A label's name must not be a number." in refused.json()["error"]["message"]
    assert "Expected dot-separated tokens" in str(refused.json())
    refused = Client().get("/api/v1/streams/?name_regex=(", headers=german)
    assert "This is not a regular expression" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a" 1}',
        "[1 2]",
        "1 2",
        '"a',
        '"a\nb"',
        '"\\q"',
        '"\\u12"',
        "[1,]",
        '{"a": 1,}',
        "\ufeff1",
        "nul",
    ],
)
def test_every_fault_of_json_is_known_in_the_language_of_the_page(text: str) -> None:
    with pytest.raises(json.JSONDecodeError) as fault:
        json.loads(text)
    english = json_faults.sentence(fault.value)
    assert fault.value.msg not in english
    with translation.override("de"):
        german = json_faults.sentence(fault.value)
    place, reason = english.split(": ", 1)
    assert german.startswith(place.replace("Line", "Zeile").replace("column", "Spalte"))
    assert reason not in german


def test_the_plan_of_a_file_is_said_in_the_language_of_the_page(
    owner: Client, make_stream: MakeStream
) -> None:
    make_group(make_stream("orders", bodies=BODIES))
    make_stream("old", bodies=[b"1"])
    owner.cookies[languages.CHOICE_COOKIE] = "de"
    text = "okmq: 1\nstreams: {orders: {max_messages: 1, groups: {billing: {}}}, new: {}}"
    page = owner.post(
        "/settings/configuration/", {"text": text, "prune": "on", "do": "look"}
    ).content.decode()
    gone = len(BODIES) - 1
    for said in (
        f"1 angelegt, 1 geändert, 1 gelöscht, {gone + 1} Nachrichten werden entfernt, "
        f"davon 1 Byte mit gelöschten Streams, 1 Gruppe verliert {gone} ungelesene Nachrichten.",
        '<bdi class="named">Stream orders</bdi>',
        "max_messages: null → 1",
        f"{gone} Nachrichten werden entfernt",
        f"Gruppe billing verliert {gone} ungelesene Nachrichten",
        "mit allem darin",
        "1 Nachricht wird entfernt, 1 Byte",
        '<span class="chip" data-state="bad">gelöscht</span>',
        '<span class="chip">geändert</span>',
    ):
        assert said in page


def test_the_plan_of_a_file_is_told_to_machines_in_english(
    make_stream: MakeStream, workspace: Workspace
) -> None:
    make_group(make_stream("orders", bodies=BODIES))
    token = token_create(workspace, name="all", scopes=["admin"], actor=SYSTEM)[1]
    german = {"Accept-Language": "de", "Authorization": f"Bearer {token}", "Cookie": "okmq_language=de"}
    told = Client().post(
        "/api/v1/configuration/apply",
        {"file": "okmq: 1\nstreams: {orders: {groups: {}}}", "prune": True, "dry_run": True},
        content_type="application/json",
        headers=german,
    )
    assert [each["what"] for each in told.json()["changes"]] == ["group billing of orders"]
