"""What people publish is text on every page: it runs nothing, loads nothing, hides nothing.

``tests/dashboard/test_hostile.py`` parses what forms, searches and files answer to the same strings.
"""

import json
from typing import Any

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.pages import State, states
from tests.hostile import HOSTILE
from tests.product import Product

pytestmark = [pytest.mark.e2e, pytest.mark.running]

GROUP = "billing"


def accepted(answer: httpx.Response) -> bool:
    """Whether it was taken; what is not must be refused, never fail."""
    assert answer.status_code < 500, answer.text
    return answer.is_success


def message(number: int, text: str) -> dict[str, Any]:
    return {
        "id": f"{number}{text[:30]}",
        "key": text[:200],
        "body": {text: [text]},
        "headers": {"<i>h</i>": text[:200]},
    }


@pytest.fixture(scope="module")
def names(running: Product) -> dict[str, str]:
    """Streams, groups, consumers, dead letters, labels, tokens, policies, queries and alerts, as hostile as may be."""
    stream = "hostile"
    with running.client() as api:
        described = {
            "description": HOSTILE[7] + HOSTILE[34],
            "labels": {"a": HOSTILE[0], "env": "production"},
        }
        api.post("/streams/", json={"name": stream, **described}).raise_for_status()
        api.post("/streams/", json={"name": "hostile-empty", "description": HOSTILE[9]}).raise_for_status()
        wanted = {"name": GROUP, "description": HOSTILE[11], "max_ack_pending": 1000}
        api.post(f"/streams/{stream}/groups/", json=wanted).raise_for_status()
        at = f"/streams/{stream}/groups/{GROUP}"
        for number, text in enumerate(HOSTILE, start=1):
            whole = message(number, text)
            for left_out in ("", "id", "key"):  # what the contract refuses of it; the body is what counts
                if left_out:
                    whole |= {"id": f"m{number}"} if left_out == "id" else {"key": "<b.'\"&amp;.<img/src=x"}
                if accepted(api.post(f"/streams/{stream}/messages", content=json.dumps(whole))):
                    break
            else:
                raise AssertionError(f"{text[:40]!r} is not published in any way.")
            fetched = {"limit": 1, "wait": 0, "consumer": text[:200]}
            if not accepted(api.post(f"{at}/fetch", content=json.dumps(fetched))):
                api.post(f"{at}/fetch", json={"limit": 1, "wait": 0}).raise_for_status()
            if number % 2:
                accepted(
                    api.post(f"{at}/term", content=json.dumps({"offsets": [number], "reason": text[:200]}))
                )
            accepted(api.post("/tokens/", content=json.dumps({"name": text[:100], "scopes": ["read"]})))
            accepted(api.post("/users/", content=json.dumps({"name": text[:100], "role": "viewer"})))
            accepted(
                api.post("/policies/", content=json.dumps({"name": f"p{number}", "description": text[:200]}))
            )
            rule = {"name": f"hostile-{number}", "stream": text[:200], "watch": "lag", "limit": 1}
            accepted(api.post("/alerts/rules/", content=json.dumps(rule)))
        lone = b'{"id": "lone", "body": "half a character: \\ud800"}'
        api.post(f"/streams/{stream}/messages", content=lone).raise_for_status()
        rule = {"name": "hostile", "stream": stream, "watch": "dead_letters", "limit": 1, "for_seconds": 0}
        api.post("/alerts/rules/", json=rule).raise_for_status()
    return {
        "stream": stream,
        "group": GROUP,
        "empty": "hostile-empty",
        "letter": "1",
        "rule": "hostile",
        "person": "admin",
    }


@pytest.fixture(scope="module", autouse=True)
def saved_queries(logged_in: BrowserContext) -> None:
    page = logged_in.new_page()
    for text in HOSTILE[:8]:
        page.goto("/sql/")
        page.get_by_label("Query").fill(text)
        page.get_by_label("Save as").fill(text[:90])
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("is saved.")).to_be_visible()
    page.close()


@pytest.fixture
def page(shared_page: Page) -> Page:
    return shared_page


@pytest.mark.parametrize(
    "state", [pytest.param(state, id=name) for name, state in states() if "{query}" not in state.path]
)
def test_every_page_stays_inert(page: Page, names: dict[str, str], state: State) -> None:
    state.shown(page, names)
    inert(page)


def test_the_list_of_messages_stays_inert_with_every_row_open(page: Page, names: dict[str, str]) -> None:
    page.goto(f"/streams/{names['stream']}/?start=oldest")
    expect(page.locator("[data-rows] tbody tr")).to_have_count(len(HOSTILE) + 1)
    for number in range(1, len(HOSTILE) + 2):
        page.locator(f'a[data-open][href$="/messages/{number}/"]').click()
        expect(page.locator(".detail")).to_have_count(number)
    inert(page)


def test_a_tail_stays_inert(page: Page, names: dict[str, str], running: Product) -> None:
    page.goto(f"/streams/{names['empty']}/tail/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    with running.client() as api:
        bodies = [{"id": f"m{number}", "body": text} for number, text in enumerate(HOSTILE)]
        api.post(f"/streams/{names['empty']}/messages", content=json.dumps(bodies)).raise_for_status()
    expect(page.locator("[data-rows] tbody tr")).to_have_count(len(HOSTILE))
    inert(page)


def test_a_raw_body_is_shown_as_text(page: Page, names: dict[str, str]) -> None:
    answer = page.goto(f"/streams/{names['stream']}/messages/1/raw/")
    assert answer is not None
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    inert(page)


def test_a_search_for_markup_is_text(page: Page) -> None:
    page.goto("/streams/?name=%3Cscript%3Ewindow.pwned=1%3C/script%3E")
    expect(page.get_by_text("No stream matches")).to_be_visible()
    inert(page)


def inert(page: Page) -> None:
    """Nothing ran and nothing became an element; that nothing was refused or asked elsewhere is seen by ``watched``."""
    assert page.evaluate("window.pwned") is None
    planted = "iframe, object, embed, base, style, math, animate, [onerror], [onload], [onbegin], [onfocus], [srcdoc]"
    assert page.locator(f"main :is({planted}), main script:not([type='application/json'])").count() == 0
    elsewhere = "[href^='//'], [src^='//'], [action^='//'], [href^='javascript:'], [href^='data:']"
    assert page.locator(elsewhere).count() == 0
