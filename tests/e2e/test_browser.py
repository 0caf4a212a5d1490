"""Finding messages, following them, taking them along: in a real browser."""

import json
import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage, Watched, publish

pytestmark = [pytest.mark.e2e, pytest.mark.running]

ROWS = "[data-rows] tbody tr"
STATUS = "[data-search-status] [role=status]"
SCANNED = re.compile(r"scanned ([\d,]+) of 3,000, ([\d,]+) match")


@pytest.fixture
def filled(api: httpx.Client, stream: str) -> str:
    """3,000 messages; every hundredth is refused."""
    for first in range(1, 3001, 1000):
        bodies = [
            {"n": n, "status": "refused" if n % 100 == 0 else "paid"} for n in range(first, first + 1000)
        ]
        publish(api, stream, *bodies, start=first)
    return stream


def go_on_to_the_end(page: Page) -> None:
    """Go on with a search to its end: how far a slice of it comes depends on how busy the machine is."""
    status = page.locator(STATUS)
    expect(status).to_contain_text("of 3,000")
    while "complete" not in (told := status.inner_text()):
        page.get_by_role("link", name="Continue").click()
        expect(status).not_to_have_text(told)


def test_a_search_goes_on_without_scripts(log_in: OpenPage, filled: str) -> None:
    page = log_in(java_script_enabled=False)
    page.goto(f"/streams/{filled}/?match=.n+%3C+1000")
    go_on_to_the_end(page)
    expect(page.locator(STATUS)).to_contain_text("scanned 3,000 of 3,000, 999 match")


def test_a_search_goes_on_in_place_and_says_what_it_scanned(page: Page, filled: str) -> None:
    """However far a slice of it comes on a busy machine: the first 2,001 messages do not match, all after them do."""
    page.goto(f"/streams/{filled}/")
    page.get_by_label("Body", exact=True).fill(".n < 1000")
    page.keyboard.press("Enter")
    status, matched = page.locator(STATUS), 0
    expect(status).to_contain_text("of 3,000")
    while matched < 100:
        told = status.inner_text()
        scanned, matched = (int(number.replace(",", "")) for number in SCANNED.search(told).groups())  # type: ignore[union-attr]
        expect(page.locator(ROWS)).to_have_count(matched)
        assert scanned - matched == 2001 if matched else scanned <= 2001
        page.get_by_role("link", name="Continue").click()
        expect(status).not_to_have_text(told)


def test_what_a_search_found_is_there_again_after_back_and_reload(page: Page, filled: str) -> None:
    page.goto(f"/streams/{filled}/?match=.n+%3C+200")
    status = page.locator(STATUS)
    go_on_to_the_end(page)
    expect(status).to_contain_text("scanned 3,000 of 3,000, 199 match")
    expect(page).to_have_url(re.compile("searched=3000"))
    for returns in (page.reload, lambda: (page.goto("/"), page.go_back())):
        returns()
        expect(status).to_contain_text("scanned 3,000 of 3,000, 199 match")
        expect(page.locator(ROWS)).to_have_count(199)


def test_a_search_says_on_a_phone_what_it_scanned(log_in: OpenPage, filled: str) -> None:
    page = log_in(viewport={"width": 390, "height": 844})
    page.goto(f"/streams/{filled}/?match=.n+%3C+1000")
    expect(page.locator(STATUS)).to_be_visible()


def test_a_value_leads_to_the_messages_that_have_it(page: Page, filled: str) -> None:
    page.goto(f"/streams/{filled}/?start=offset&at=300")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    value = page.locator(".tree div").filter(has_text=re.compile("^status"))
    value.hover()
    value.get_by_title("Messages with this value").click()
    expect(page.get_by_label("Body", exact=True)).to_have_value('.status = "refused"')
    go_on_to_the_end(page)
    expect(page.locator(STATUS)).to_contain_text("scanned 3,000 of 3,000, 30 match")


def test_dragging_over_the_timeline_chooses_a_span(page: Page, filled: str) -> None:
    page.goto(f"/streams/{filled}/")
    bars = page.locator("[data-brush] a")
    first, last = bars.first.bounding_box(), bars.last.bounding_box()
    assert first is not None
    assert last is not None
    if bars.count() > 1:
        page.mouse.move(first["x"] + 2, first["y"] + 20)
        page.mouse.down()
        page.mouse.move(last["x"] + last["width"] / 2, last["y"] + 20, steps=5)
        page.mouse.up()
    else:
        bars.first.click()
    expect(page).to_have_url(re.compile(r"start=time&at=.*&until="))
    expect(page.get_by_role("link", name="the whole stream")).to_be_visible()
    expect(page.locator(ROWS).first).to_contain_text("1")


def test_a_mark_on_a_bar_is_no_obstacle(page: Page, filled: str) -> None:
    mark, first = page.locator("[data-brush] .mark").first, page.locator("[data-brush] a").first
    for drags in (False, True):
        page.goto(f"/streams/{filled}/")
        begin, end = first.bounding_box(), mark.bounding_box()
        assert begin is not None
        assert end is not None
        if drags:
            page.mouse.move(begin["x"] + 2, begin["y"] + 20)
            page.mouse.down()
        page.mouse.move(end["x"], end["y"] + 20)
        if not drags:
            page.mouse.down()
        page.mouse.up()
        expect(page).to_have_url(re.compile(r"start=time&at=.*&until="))


def test_a_tail_shows_what_arrives_and_counts_what_waits_while_paused(
    page: Page, api: httpx.Client, stream: str
) -> None:
    page.goto(f"/streams/{stream}/tail/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    publish(api, stream, {"n": 1}, {"n": 2})
    expect(page.locator(ROWS)).to_have_count(2)
    page.keyboard.press("p")
    publish(api, stream, {"n": 3}, {"n": 4}, {"n": 5}, start=3)
    expect(page.locator("[data-tail-word]")).to_have_text("Paused, up to 3 waiting")
    expect(page.locator(ROWS)).to_have_count(2)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(ROWS)).to_have_count(5)
    expect(page.locator(ROWS).first).to_contain_text('{"n":5}')
    page.get_by_role("button", name="Stop").click()
    publish(api, stream, {"n": 6}, start=6)
    expect(page.locator("[data-tail-word]")).to_have_text("Stopped, 5 rows kept")
    expect(page.locator(ROWS)).to_have_count(5)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(ROWS)).to_have_count(6)


def test_a_tail_that_was_not_answered_asks_again_though_nothing_more_comes(
    page: Page, api: httpx.Client, stream: str, watched: Watched
) -> None:
    watched.forgive("ERR_FAILED")
    page.goto(f"/streams/{stream}/tail/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    page.route("**/tail/?*", lambda route: route.abort())
    publish(api, stream, {"n": 1})
    expect(page.locator("[data-tail-word]")).to_have_text("Stale")
    page.unroute("**/tail/?*")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator("[data-tail-word]")).to_have_text("Live")


def test_several_streams_are_followed_in_one_tail(page: Page, api: httpx.Client, unique: str) -> None:
    names = [f"{unique}-{each}" for each in ("a", "b", "c")]
    for name in names:
        api.post("/streams/", json={"name": name}).raise_for_status()
    page.goto(f"/streams/?name={unique}")
    for name in names[:2]:
        page.get_by_label(f"Select {name}").check()
    page.get_by_role("button", name="Tail", exact=True).click()
    expect(page).to_have_url(re.compile(rf"/tail/\?stream={unique}-a&stream={unique}-b$"))
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    for name in names:
        publish(api, name, {"of": name})
    expect(page.locator(ROWS)).to_have_count(2)
    page.locator(ROWS).filter(has_text=f"{unique}-b").locator("[data-open]").click()
    expect(page.locator(".detail")).to_contain_text("m1")
    page.locator(ROWS).locator("[data-open][aria-expanded=true]").click()
    page.keyboard.press("p")
    publish(api, names[0], {"n": 2}, start=2)
    publish(api, names[1], {"n": 2}, {"n": 3}, start=2)
    expect(page.locator("[data-tail-word]")).to_have_text("Paused, up to 3 waiting")
    page.get_by_role("button", name="Resume").last.click()
    expect(page.locator(ROWS)).to_have_count(5)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(ROWS)).to_have_count(0)


def test_a_tail_by_pattern_takes_in_streams_that_are_made_later(
    page: Page, api: httpx.Client, unique: str
) -> None:
    page.goto(f"/tail/?streams={unique}-*")
    expect(page.get_by_role("heading", name="No stream selected")).to_be_visible()
    api.post("/streams/", json={"name": f"{unique}-a"}).raise_for_status()
    expect(page.locator("[data-tail-word]")).to_have_text("Waiting for messages")
    api.post("/streams/", json={"name": f"{unique}-b"}).raise_for_status()
    publish(api, f"{unique}-b", 1, 2)
    expect(page.locator("#taken-in")).to_contain_text(f"{unique}-b")
    expect(page.locator("[data-rows] tr[data-offset]")).to_have_count(2)
    publish(api, f"{unique}-b", 3, start=3)
    publish(api, f"{unique}-a", 4)
    expect(page.locator("[data-rows] tr[data-offset]")).to_have_count(4)
    expect(page.locator(".followed .chip")).to_have_count(2)


def test_a_tail_keeps_as_many_rows_as_are_chosen(page: Page, api: httpx.Client, stream: str) -> None:
    page.goto(f"/streams/{stream}/tail/?ring=50")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    publish(api, stream, *({"n": n} for n in range(1, 81)))
    expect(page.locator(ROWS).first).to_contain_text('{"n":80}')
    expect(page.locator(ROWS)).to_have_count(50)


def test_a_stream_deleted_in_a_tail_of_several_is_told_and_begins_anew_when_made_again(
    page: Page, api: httpx.Client, unique: str
) -> None:
    names = [f"{unique}-a", f"{unique}-b"]
    for name in names:
        api.post("/streams/", json={"name": name}).raise_for_status()
    page.goto(f"/tail/?streams={unique}-*")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    for name in names:
        publish(api, name, {"life": "first"})
    expect(page.locator(ROWS)).to_have_count(2)
    api.delete(f"/streams/{names[0]}").raise_for_status()
    chip = page.locator(".followed .chip", has_text=names[0])
    expect(chip).to_contain_text("Deleted", use_inner_text=True)
    expect(chip.locator("[data-field=rate_in]")).to_have_css("filter", "grayscale(1)")
    expect(page.locator(".followed .chip", has_text=names[1])).not_to_contain_text(
        "Deleted", use_inner_text=True
    )
    api.post("/streams/", json={"name": names[0]}).raise_for_status()
    publish(api, names[0], {"life": "second"})
    expect(chip).not_to_contain_text("Deleted", use_inner_text=True)
    expect(page.locator(ROWS).filter(has_text="second")).to_have_count(1)
    expect(page.locator(ROWS)).to_have_count(2)


def test_everything_that_matches_is_downloaded(page: Page, filled: str, tmp_path: Path) -> None:
    page.goto(f"/streams/{filled}/?match=refused")
    page.locator("summary").filter(has_text="Export").click()
    with page.expect_download() as started:
        page.get_by_role("link", name="NDJSON").click()
    started.value.save_as(tmp_path / "export")
    lines = (tmp_path / "export").read_text().splitlines()
    assert [json.loads(line)["offset"] for line in lines] == list(range(100, 3001, 100))
    assert started.value.suggested_filename == f"{filled}-1-3000.ndjson"


def test_a_message_is_published_again_and_deleted(page: Page, api: httpx.Client, stream: str) -> None:
    publish(api, stream, {"id": 9007199254740993})
    page.goto(f"/streams/{stream}/messages/1/")
    page.get_by_role("link", name="Publish again…").click()
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("Stored at offset 2.")).to_be_visible()
    page.get_by_role("link", name="Show it").click()
    expect(page).to_have_url(re.compile("/messages/2/"))
    page.go_back()
    page.reload()
    expect(page.get_by_label("Body (JSON)")).to_have_value('{"id":9007199254740993}')
    expect(page.get_by_text("Stored at offset")).to_have_count(0)
    page.goto(f"/streams/{stream}/messages/1/")
    page.get_by_role("link", name="Delete…").click()
    expect(page.get_by_role("link", name="Cancel")).to_be_focused()
    page.get_by_role("button", name="Delete message").click()
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(ROWS).first).to_contain_text("9007199254740993")


def test_several_streams_are_deleted_after_a_preview_and_a_typed_name(
    page: Page, api: httpx.Client, unique: str
) -> None:
    for name, labels in ((f"{unique}-a", {}), (f"{unique}-b", {"env": "production"})):
        api.post("/streams/", json={"name": name, "labels": labels}).raise_for_status()
    page.goto(f"/streams/?name={unique}")
    expect(page.get_by_role("button", name="Delete…")).to_be_hidden()
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_role("heading", name="2 streams")).to_be_visible()
    expect(page.get_by_role("link", name="Cancel")).to_be_focused()
    page.get_by_label(f"Type {unique}-b to confirm").fill(f"{unique}-b")
    page.get_by_role("button", name="Delete 2 streams").click()
    expect(page.get_by_text("2 streams were deleted with 0 messages.")).to_be_visible()
    assert api.get(f"/streams/{unique}-b").status_code == 404


def test_the_columns_that_were_chosen_stay_chosen(page: Page, stream: str) -> None:
    page.goto(f"/streams/?name={stream}")
    page.locator("summary").filter(has_text="Columns").click()
    page.get_by_role("checkbox", name="Size").uncheck()
    page.get_by_role("checkbox", name="Created").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("columnheader", name="Created")).to_be_visible()
    page.goto("/streams/")
    expect(page.get_by_role("columnheader", name="Created")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Size")).to_have_count(0)


def test_streams_are_found_by_label(page: Page, api: httpx.Client, unique: str) -> None:
    for name in ("a", "b"):
        body = {"name": f"{unique}-{name}", "labels": {"made-by": f"{unique}-{name}"}}
        api.post("/streams/", json=body).raise_for_status()
    page.goto("/streams/")
    page.get_by_label("Label", exact=True).fill(f"made-by:{unique}-b")
    expect(page.locator("[data-row]")).to_have_text([f"{unique}-b"])
    expect(page).to_have_url(f"/streams/?label=made-by%3A{unique}-b")


def test_what_is_open_is_in_the_address_and_comes_back(page: Page, filled: str) -> None:
    page.goto(f"/streams/{filled}/?start=oldest")
    page.locator("[data-open]").nth(2).click()
    expect(page.locator(".detail")).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?start=oldest&open=3$"))
    page.reload()
    expect(page.locator("tr.detail-row .detail")).to_have_count(1)
    page.locator("[data-open]").nth(2).click()
    expect(page.locator(".detail")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"\?start=oldest$"))


def test_a_row_that_is_clicked_twice_opens_once_and_takes_no_other_away(page: Page, filled: str) -> None:
    page.goto(f"/streams/{filled}/?start=oldest")
    rows = page.locator(f"{ROWS}[data-offset]")
    before = rows.count()
    page.locator("[data-open]").nth(2).evaluate("(opener) => { opener.click(); opener.click(); }")
    expect(page.locator("tr.detail-row .detail")).to_have_count(1)
    expect(rows).to_have_count(before)
    page.locator("[data-open]").nth(2).click()
    expect(page.locator("tr.detail-row")).to_have_count(0)


def test_filters_are_kept_under_a_name_and_put_on_and_off_without_scripts(
    log_in: OpenPage, filled: str
) -> None:
    page = log_in(java_script_enabled=False)
    page.goto(f"/streams/{filled}/?match=refused")
    page.locator("summary").filter(has_text="Saved filters").click()
    page.get_by_label("Save current filters as").fill("refused <b>ones</b>")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("The filters were saved as refused <b>ones</b>.")).to_be_visible()
    chip = page.get_by_role("link", name="refused <b>ones</b>")
    expect(chip).to_have_attribute("aria-current", "true")
    chip.click()
    expect(page).to_have_url(re.compile(rf"/streams/{filled}/\?$"))
    expect(chip).not_to_have_attribute("aria-current", "true")
    chip.click()
    expect(page).to_have_url(re.compile(r"\?match=refused$"))
    page.locator("summary").filter(has_text="Saved filters").click()
    page.get_by_role("button", name="Delete refused").click()
    expect(chip).to_have_count(0)


def test_columns_of_fields_and_a_filter_on_headers_stand_in_the_address(
    page: Page, api: httpx.Client, stream: str
) -> None:
    messages = [
        {
            "id": f"m{n}",
            "body": {"order": 9007199254740993 + n, "at": {"city": "Kraków"}},
            "headers": {"trace": f"t{n}"},
        }
        for n in (0, 1)
    ]
    api.post(f"/streams/{stream}/messages", json=messages).raise_for_status()
    page.goto(f"/streams/{stream}/")
    page.locator("summary").filter(has_text="More filters").click()
    page.get_by_label("Columns").fill(".order, .at.city")
    page.get_by_label("Header").fill("trace = t1")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"cols=\.order"))
    expect(page.get_by_role("columnheader", name=".at.city")).to_be_visible()
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(f"{ROWS} td.chosen")).to_have_text(["9007199254740994", "Kraków"])
    assert page.locator(f"{ROWS} td.preview").evaluate("cell => cell.clientWidth") >= 100
    page.locator("a[data-open]").first.click()
    expect(page.locator(".detail")).to_be_visible()
    page.get_by_role("link", name="Tail").click()
    expect(page.get_by_role("columnheader", name=".order")).to_be_visible()
    api.post(f"/streams/{stream}/messages", json={**messages[1], "id": "m9"}).raise_for_status()
    expect(page.locator(f"{ROWS} td.chosen").first).to_have_text("9007199254740994")


def test_the_time_that_a_stream_spans_is_one_line_of_its_header(
    page: Page, api: httpx.Client, stream: str
) -> None:
    publish(api, stream, 1, 2)
    page.goto(f"/streams/{stream}/")
    figures = page.locator("dl.of-stream")
    before = figures.evaluate("it => it.clientHeight")
    span = figures.locator("[data-field=span_s][data-format=duration]")
    span.evaluate("it => { it.textContent = '13 min 59 s' }")
    assert span.evaluate("it => it.closest('dd').clientHeight") < 24
    assert figures.evaluate("it => it.clientHeight") == before <= 75
