"""Many messages from pasted lines or a file, as a person publishes them."""

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage, Watched

pytestmark = [pytest.mark.e2e, pytest.mark.running]


def count(api: httpx.Client, stream: str) -> int:
    held: int = api.get(f"/streams/{stream}").json()["messages"]
    return held


def publish(page: Page) -> None:
    page.get_by_role("button", name="Publish", exact=True).click()


def test_a_file_goes_in_parts_up_to_the_wrong_line_and_on_from_there(
    page: Page, api: httpx.Client, stream: str, tmp_path: Path
) -> None:
    lines = [f'{{"id": "m{n}", "body": {{"n": {n}, "text": "{"x" * 200}"}}}}' for n in range(1, 9001)]
    wrong = [*lines[:7999], '{"id": "m8000"}', *lines[8000:]]
    file = tmp_path / "lines.ndjson"
    file.write_text("\n".join(wrong))
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    page.goto(f"/streams/{stream}/publish/")
    page.get_by_role("link", name="Many", exact=True).click()
    page.get_by_label("Or a file").set_input_files(file)
    publish(page)
    expect(page.get_by_text("Line 8,000 was not stored")).to_be_visible()
    expect(page.get_by_text("7,999 messages were stored.")).to_be_visible()
    assert len(posts) > 2
    assert count(api, stream) == 7999
    expect(page.get_by_label("Start at line")).to_have_value("8000")
    file.write_text("\n".join(lines))
    page.get_by_label("Or a file").set_input_files(file)
    publish(page)
    expect(page.get_by_text("1,001 messages were stored.")).to_be_visible()
    assert count(api, stream) == 9000
    page.get_by_role("link", name="Offsets 8,000 to 9,000").click()
    expect(page).to_have_url(re.compile(rf"/streams/{stream}/\?start=offset&at=8000"))


def test_pasted_bodies_are_kept_or_not_as_chosen(page: Page, api: httpx.Client, stream: str) -> None:
    page.goto(f"/streams/{stream}/publish/many/")
    page.get_by_label("Each line is").select_option("body")
    page.get_by_label("Lines", exact=True).fill("1\n2")
    publish(page)
    expect(page.get_by_text("Offsets 1 to 2")).to_be_visible()
    expect(page.get_by_label("Lines", exact=True)).to_have_value("1\n2")
    page.get_by_label("Keep the contents afterwards").uncheck()
    publish(page)
    expect(page.get_by_text("Offsets 3 to 4")).to_be_visible()
    expect(page.get_by_label("Lines", exact=True)).to_have_value("")
    assert count(api, stream) == 4


def test_a_broken_connection_is_said_and_publishing_again_stores_nothing_twice(
    page: Page, api: httpx.Client, stream: str, watched: Watched
) -> None:
    watched.forgive("Failed to load resource")
    page.goto(f"/streams/{stream}/publish/many/")
    page.get_by_label("Each line is").select_option("body")
    page.get_by_label("Lines", exact=True).fill("1\n2\n3")
    address = re.compile("publish/many/$")

    def store_and_break(route: object) -> None:
        route.fetch()  # type: ignore[attr-defined]
        route.abort()  # type: ignore[attr-defined]

    page.route(address, store_and_break)
    publish(page)
    expect(page.get_by_text("The server did not respond:")).to_be_visible()
    page.unroute(address)
    publish(page)
    expect(page.get_by_text("3 were skipped")).to_be_visible()
    assert count(api, stream) == 3


def test_without_a_script_the_whole_form_is_sent(log_in: OpenPage, api: httpx.Client, stream: str) -> None:
    page = log_in(java_script_enabled=False)
    page.goto(f"/streams/{stream}/publish/many/")
    page.get_by_label("Each line is").select_option("body")
    page.get_by_label("Lines", exact=True).fill("1\ntwo\n3")
    publish(page)
    expect(page.get_by_text("Line 2 was not stored")).to_be_visible()
    page.get_by_label("Lines", exact=True).fill("1\n2\n3")
    publish(page)
    expect(page.get_by_text("Offsets 2 to 3")).to_be_visible()
    assert count(api, stream) == 3
