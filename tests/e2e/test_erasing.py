"""What must not be kept is previewed, deleted, erased from the history, and asked for in SQL: it is gone."""

from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage, Watched
from tests.e2e.test_axe import found_in_both_lights, found_on_a_phone
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.running, pytest.mark.spark, pytest.mark.timeout(450)]

SPARK_STARTS_MS = 240_000


@pytest.fixture
def page(log_in: OpenPage) -> Page:
    """Nothing moves in it, so that colours are looked at as they end."""
    return log_in(reduced_motion="reduce")


@pytest.fixture
def people(api: httpx.Client, stream: str) -> str:
    """A stream of five messages in the history, two of them of Ann, of which one is a dead letter."""
    keys = ["people.ann", "people.bob", "people.ann", "people.eve", "people.eve"]
    messages = [{"id": f"m{n}", "key": key, "body": {"of": key}} for n, key in enumerate(keys, start=1)]
    api.post(f"/streams/{stream}/messages", json=messages).raise_for_status()
    group = f"/streams/{stream}/groups/"
    api.post(group, json={"name": "billing"}).raise_for_status()
    api.post(f"{group}billing/fetch", json={"limit": 9, "wait": 0}).raise_for_status()
    api.post(f"{group}billing/term", json={"offsets": [1], "reason": "no price"}).raise_for_status()
    asked = api.post("/analytics/runs", json={}).raise_for_status().json()["runs"]
    (archive,) = [each["id"] for each in asked if each["job"] == "archive"]
    until(
        lambda: api.get(f"/analytics/runs/{archive}").raise_for_status().json()["state"] == "succeeded",
        within_s=240,
        what="the history has them",
    )
    return stream


def in_history(api: httpx.Client, stream: str) -> list[Any]:
    """The offsets that SQL finds of a stream, and their keys."""
    sql = f"SELECT offset, key FROM messages WHERE stream = '{stream}' ORDER BY offset"
    told = api.post("/analytics/query", json={"sql": sql}, timeout=60).raise_for_status()
    rows: list[Any] = told.json()["rows"]
    return rows


def test_a_key_is_previewed_deleted_and_erased_and_sql_finds_it_no_more(
    page: Page, api: httpx.Client, people: str
) -> None:
    page.goto(f"/streams/{people}/history/")
    page.get_by_role("link", name="Erase…").click()
    expect(page.get_by_text("Nothing was ever erased from the history of this stream.")).to_be_visible()
    page.get_by_label("Erase", exact=True).select_option("key")
    page.get_by_label("Offset or key").fill("people.ann")
    page.get_by_role("button", name="Preview").click()
    effect = page.locator("#effect")
    expect(effect).to_contain_text("This erases 2 messages from the history.", timeout=SPARK_STARTS_MS)
    expect(effect).to_contain_text("1 dead letter of group billing is deleted.")
    expect(effect).to_contain_text("2 messages are still in the stream and stay there.")
    expect(page.get_by_role("link", name="Cancel")).to_be_focused()
    assert "people.ann" not in page.url
    assert found_in_both_lights(page) == []
    assert found_on_a_phone(page) == []
    page.set_viewport_size({"width": 1280, "height": 800})
    gone = {"key": "people.ann", "undo": "false"}
    api.delete(f"/streams/{people}/messages", params=gone).raise_for_status()
    page.get_by_role("button", name="Count again").click()
    expect(page.get_by_role("button", name="Erase 2 messages")).to_be_visible(timeout=SPARK_STARTS_MS)
    expect(page.get_by_role("link", name="Cancel")).to_be_focused()
    expect(effect).not_to_contain_text("still in the stream")
    assert [key for _, key in in_history(api, people)].count("people.ann") == 2
    page.get_by_role("button", name="Erase 2 messages").click()
    expect(page.get_by_text("was requested.")).to_be_visible()
    row = page.locator("#erasures tbody tr")
    expect(row.locator(".chip")).to_have_text("succeeded", timeout=SPARK_STARTS_MS)
    expect(row).to_contain_text("looked through to offset 5")
    expect(row.locator('[data-label="Messages"]')).to_have_text("2")
    expect(row.locator('[data-label="Dead letters"]')).to_have_text("1")
    assert in_history(api, people) == [[2, "people.bob"], [4, "people.eve"], [5, "people.eve"]]
    assert found_in_both_lights(page) == []
    assert found_on_a_phone(page) == []
    row.get_by_role("link", name="Event #").last.click()
    expect(page.locator("table.events tbody tr").first).to_contain_text("of a key from the history of")
    expect(page.locator("table.events tbody tr").first).to_contain_text("was done.")
    assert "people.ann" not in page.locator("table.events tbody tr").first.inner_text()


def test_a_message_that_the_stream_has_lost_is_erased_from_its_own_page(
    page: Page, api: httpx.Client, people: str, watched: Watched
) -> None:
    watched.forgive("404")
    api.delete(f"/streams/{people}/messages/4", params={"undo": "false"}).raise_for_status()
    page.goto(f"/streams/{people}/messages/4/")
    page.get_by_role("link", name="Erase from the history…").click()
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Erase 1 message").click(timeout=SPARK_STARTS_MS)
    expect(page.locator("#erasures .chip")).to_have_text("succeeded", timeout=SPARK_STARTS_MS)
    assert [offset for offset, _ in in_history(api, people)] == [1, 2, 3, 5]
