"""What scripts say goes through gettext, as what templates say does."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import translation

from dashboard import formats, languages, words
from streams import health
from streams.health import Health
from streams.reasons import Paused
from streams.upkeep.alerting import Alerting
from streams.verdicts import because
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import BODIES, make_group

SCRIPTS = sorted((Path(words.__file__).parent / "static" / "js").glob("*.js"))


@pytest.fixture
def german(owner: Client) -> Iterator[None]:
    """Who looks reads German."""
    owner.cookies[languages.CHOICE_COOKIE] = "de"
    with translation.override("de"):
        yield


def test_every_word_that_a_script_says_is_listed_for_translation() -> None:
    said = {word for script in SCRIPTS for word in re.findall(r'\bsay\("([^"]+)"', script.read_text())}
    assert said >= {"Live", "Stale", "%(time)s ago"}
    assert said <= set(words.WORDS)


def test_every_listed_word_stands_in_a_script() -> None:
    text = "".join(script.read_text() for script in SCRIPTS)
    assert [word for word in words.WORDS if f'"{word}"' not in text] == []


def test_a_page_brings_its_scripts_their_words(owner: Client, german: None) -> None:
    page = owner.get("/").content.decode()
    found = re.search(r'<script id="words" type="application/json">(.*?)</script>', page)
    assert found
    assert json.loads(found[1])["Stale"] == "Veraltet"
    assert '<html lang="de"' in page


def test_what_the_server_says_before_the_script_is_in_the_same_language(german: None) -> None:
    assert formats.age(180) == "vor 3 min"


@pytest.mark.parametrize(
    ("lag", "said"), [(1, "Angehalten; 1 Nachricht wartet."), (1200, "Angehalten; 1,200 Nachrichten warten.")]
)
def test_a_reason_that_a_worker_kept_is_in_the_language_of_who_reads_it(
    german: None, lag: int, said: str
) -> None:
    with translation.override("en"):
        kept = health.written(Health(samples=[], verdict=because("paused", Paused(lag)), since_ms=1))
    found = health.read(kept)
    assert found
    assert found.verdict.reason == said


def test_an_alert_and_what_needs_attention_are_in_the_language_of_who_reads_them(
    owner: Client, german: None, make_stream: MakeStream
) -> None:
    with translation.override("en"):
        make_group(make_stream("orders", bodies=BODIES))
        for name, watch in (
            ("lags", {"watch": "lag", "limit": "2"}),
            ("paused", {"watch": "status", "statuses": "paused"}),
        ):
            owner.post("/alerts/", {"name": name, "stream": "orders", "lasting": "", **watch})
        owner.post("/streams/orders/groups/billing/pause/")
        Alerting().look(now_s=0)
    page = owner.get("/alerts/").content.decode()
    assert "Gruppe billing von orders: Rückstand 20, über 2." in page
    assert "Gruppe billing von orders ist paused: Angehalten; Bestätigungen zählen weiter." in page
    assert "2 Alarme sind aktiv." in owner.get("/").content.decode()


def test_a_page_in_english_brings_none(owner: Client) -> None:
    page = owner.get("/").content.decode()
    assert f'<html lang="{settings.LANGUAGE_CODE}"' in page
    assert 'id="words"' not in page
