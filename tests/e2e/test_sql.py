"""The page SQL in a real browser: asked, followed, cancelled, shown as grid, chart and file, refused, saved."""

import csv
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import publish

pytestmark = [pytest.mark.e2e, pytest.mark.running, pytest.mark.spark, pytest.mark.timeout(400)]

SPARK_STARTS_MS = 240_000
# As many short tasks as nobody waits for.
ENDLESS = "SELECT count(*) FROM range(0, 1000000000000, 1, 10000) WHERE hash(id) = 7 AND hash(id) = 8"


def ask(page: Page, sql: str) -> None:
    page.get_by_label("Query").fill(sql)
    page.get_by_role("button", name="Run", exact=True).click()


def is_answered(page: Page, state: str = "succeeded") -> None:
    """The page turns to the answer by itself."""
    expect(page.locator("#answer .chip")).to_have_text(state, timeout=SPARK_STARTS_MS)


def test_a_query_is_asked_and_its_answer_is_a_grid_a_chart_and_a_file(
    page: Page, api: httpx.Client, stream: str, tmp_path: Path
) -> None:
    publish(api, stream, *({"n": 9007199254740993 + n, "formula": "=1+1"} for n in range(30)))
    page.goto(f"/streams/{stream}/history/")
    page.get_by_role("link", name="Query in SQL").click()
    expect(page.get_by_label("Query")).to_have_value(
        f"SELECT * FROM messages\nWHERE stream = '{stream}'\nORDER BY offset DESC LIMIT 100"
    )
    ask(
        page,
        "SELECT offset, bytes, get_json_object(body, '$.n') AS n, get_json_object(body, '$.formula') AS formula\n"
        f"FROM messages WHERE stream = '{stream}' ORDER BY offset",
    )
    expect(
        page.get_by_role("progressbar", name="Progress").or_(page.locator("#answer table"))
    ).to_be_visible()
    is_answered(page)
    rows = page.locator("#answer tbody tr")
    expect(page.locator("#answer")).to_contain_text("30 rows")
    expect(rows.first).to_contain_text("9007199254740993")
    expect(page.locator("#answer .chart canvas").first).to_be_visible()
    expect(page.locator("#queries-latest tbody tr").first).to_contain_text("succeeded")
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV").click()
    started.value.save_as(tmp_path / "answer.csv")
    with (tmp_path / "answer.csv").open(newline="") as file:
        head, first, *others = csv.reader(file)
    assert head == ["offset", "bytes", "n", "formula"]
    assert first[2:] == ["9007199254740993", "'=1+1"]
    assert len(others) == 29
    address = page.url
    page.goto("/sql/")
    page.get_by_role("link", name="SELECT offset, bytes").first.click()
    expect(page).to_have_url(address)


def test_what_is_written_while_a_query_runs_stays_when_it_is_answered(page: Page) -> None:
    page.goto("/sql/")
    ask(page, "SELECT id AS x, -id AS y FROM range(9)")
    page.get_by_label("Query").fill("SELECT 'the next'")
    page.get_by_label("Save as").fill("next")
    is_answered(page)
    expect(page.locator("#answer .chart canvas")).to_have_count(1)
    expect(page.get_by_label("Query")).to_have_value("SELECT 'the next'")
    expect(page.get_by_label("Save as")).to_have_value("next")


def test_the_query_that_the_editor_begins_with_has_a_time_first_as_charts_need(
    page: Page, api: httpx.Client, stream: str
) -> None:
    publish(api, stream, 1)
    page.goto("/sql/")
    page.get_by_role("button", name="Run", exact=True).click()
    is_answered(page)
    expect(page.locator("#answer thead th").first).to_contain_text("hour timestamp")
    expect(page.locator("#answer tbody tr").first).to_be_visible()


def test_a_query_is_cancelled_while_it_runs(page: Page) -> None:
    page.goto("/sql/")
    ask(page, ENDLESS)
    expect(page.locator("#answer .chip")).to_have_text("running", timeout=SPARK_STARTS_MS)
    page.get_by_label("Query").fill("SELECT 'better'")
    page.get_by_role("button", name="Cancel").click()
    is_answered(page, "cancelled")
    expect(page.get_by_label("Query")).to_have_value("SELECT 'better'")
    expect(page.locator("#answer").get_by_role("alert")).to_contain_text("Cancelled.")


def test_a_query_that_is_wrong_says_why_and_stays_to_be_mended(page: Page) -> None:
    page.goto("/sql/")
    ask(page, "SELECT nonsense FROM messages")
    is_answered(page, "refused")
    expect(page.locator("#answer").get_by_role("alert")).to_contain_text("nonsense")
    expect(page.get_by_label("Query")).to_have_value("SELECT nonsense FROM messages")


def test_a_query_is_saved_for_everybody_and_let_go(page: Page, unique: str) -> None:
    page.goto("/sql/")
    page.get_by_label("Query").fill("SELECT 1")
    page.get_by_label("Save as").fill(unique)
    page.get_by_role("button", name="Save", exact=True).click()
    page.goto("/sql/")
    page.get_by_role("link", name=unique).click()
    expect(page.get_by_label("Query")).to_have_value("SELECT 1")
    page.get_by_role("button", name=f"Delete {unique}").click()
    expect(page.get_by_text(f"Saved query {unique} was deleted.")).to_be_visible()
