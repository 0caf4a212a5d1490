"""What an operator does when something is wrong: looks, sees why, looks before acting, acts, takes it back."""

import re
from contextlib import closing
from typing import Any

import httpx
import msgspec
import pytest
from playwright.sync_api import Locator, Page, expect

from streams import health
from streams.log import config, healths, standing
from streams.log.client import Log
from streams.upkeep.watching import sample_of
from streams.verdicts import EVERY_MS, KNOWN_FROM
from tests.e2e.conftest import OpenPage, publish
from tests.product import Product
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.running]

SOME_FIRE = re.compile(r"^Alerts [1-9]\d* firing$")
PHONE = {"width": 390, "height": 844}
LOOKS = pytest.mark.parametrize(
    "look",
    [{}, {"viewport": PHONE, "has_touch": True}, {"color_scheme": "dark"}],
    ids=["desk", "phone", "dark"],
)


@pytest.fixture
def group(api: httpx.Client, stream: str) -> str:
    """The path of a group of a stream of ten messages."""
    publish(api, stream, *({"n": n} for n in range(1, 11)))
    api.post(f"/streams/{stream}/groups/", json={"name": "billing", "max_deliver": 2}).raise_for_status()
    return f"/streams/{stream}/groups/billing"


def fetched(api: httpx.Client, group: str, *, limit: int) -> list[int]:
    got = api.post(f"{group}/fetch", json={"limit": limit, "wait": 0, "consumer": "one"}).raise_for_status()
    return [message["offset"] for message in got.json()]


def acked(api: httpx.Client, group: str, offsets: list[int]) -> None:
    api.post(f"{group}/ack", json={"offsets": offsets}).raise_for_status()


def figure(page: Page, field: str) -> Locator:
    return page.locator(f'.figures [data-field="{field}"]').first


def test_what_is_published_in_one_browser_arrives_in_another(
    page: Page, log_in: OpenPage, unique: str
) -> None:
    page.goto("/streams/_new/")
    page.get_by_label("Name").fill(unique)
    page.get_by_role("button", name="Create stream").click()
    other = log_in()
    other.goto(f"/streams/{unique}/tail/")
    expect(other.locator("[data-live-word]")).to_have_text("Live")
    page.get_by_role("link", name="Publish", exact=True).click()
    page.get_by_label("Body (JSON)").fill('{"order": 9007199254740993}')
    page.get_by_role("button", name="Publish").click()
    expect(other.locator("[data-rows] tbody tr").first).to_contain_text("9007199254740993", timeout=5_000)


def grew(running: Product, stream: str) -> None:
    """As if the worker had watched the group for half a minute, in which ever more waited."""
    with closing(Log(running.store_url)) as log:
        (stream_id,) = [each.stream_id for each in log.run(config.streams()) if each.name == stream]
        state = log.run(standing.inspect(stream_id, "billing"))
        now = sample_of(state, held=0, polls=0)
        samples = [
            msgspec.structs.replace(now, at_ms=now.at_ms - n * EVERY_MS, lag=now.lag - 2 * n)
            for n in range(KNOWN_FROM - 2, -1, -1)
        ]
        found = health.looked(None, samples[0])
        for sample in samples[1:]:
            found = health.looked(found, sample)
        assert found.verdict.status == "unknown"
        log.run(healths.put(stream_id, "billing", health.written(found)))


def test_a_status_is_unknown_until_it_is_known_changes_on_the_list_and_says_why(
    page: Page, api: httpx.Client, group: str, stream: str, running: Product
) -> None:
    page.goto(group.rpartition("/")[0] + "/")
    row = page.get_by_role("row", name="billing")
    status, verdict = row.locator('[data-field="status"]'), row.locator(".verdict")
    expect(status).to_have_text("unknown")
    expect(verdict).to_have_attribute("title", re.compile("too short to tell|Not enough samples yet to tell"))
    grew(running, stream)
    expect(status).to_have_text("slow", timeout=15_000)
    expect(verdict).to_have_attribute(
        "title", re.compile("^More is published than acknowledged: 10 messages waiting, ")
    )
    expect(row.locator(".dot")).to_have_attribute("data-state", "warn")
    api.post(f"{group}/pause", json={}).raise_for_status()
    expect(status).to_have_text("paused", timeout=5_000)
    expect(verdict).to_have_attribute("title", "Paused until resumed by hand; 10 messages waiting.")


@LOOKS
def test_a_position_is_sought_back_after_a_preview_and_the_seek_undone(
    log_in: OpenPage, api: httpx.Client, group: str, look: dict[str, Any]
) -> None:
    acked(api, group, fetched(api, group, limit=6))
    page = log_in(**look)
    page.goto(f"{group}/")
    seek = page.locator("#seek")
    seek.get_by_label("Seek to").select_option("earliest")
    seek.get_by_role("button", name="Preview").click()
    expect(seek.get_by_text("6 messages are redelivered.")).to_be_visible()
    expect(seek.get_by_text("Next offset: from 7 to 1.")).to_be_visible()
    bodies = seek.locator(".facts code")
    expect(bodies).to_have_text(['{"n":1}', '{"n":6}'])
    assert fetched(api, group, limit=1) == [7]  # the preview moved nothing
    api.post(f"{group}/nack", json={"offsets": [7]}).raise_for_status()
    page.reload()
    seek.get_by_role("button", name="Go to offset 1").click()
    expect(page.get_by_text("The next offset is 1; it was 8.")).to_be_visible()
    assert fetched(api, group, limit=1) == [1]
    undo = page.locator(".notice").get_by_role("button", name="Undo: back to offset 8")
    expect(undo).to_be_in_viewport()
    undo.click()
    expect(page.get_by_text("The next offset is 8")).to_be_visible()
    assert fetched(api, group, limit=1) == [8]
    expect(seek.get_by_text("1 message, from offset 7 on, that was in flight")).to_be_visible()
    seek.get_by_role("button", name="Go to offset 7").click()
    expect(page.get_by_text("The next offset is 7")).to_be_visible()
    assert fetched(api, group, limit=1) == [7]
    expect(seek.get_by_text("from offset 7 on")).to_have_count(0)


def test_a_message_that_is_given_back_too_often_becomes_a_dead_letter_and_is_replayed(
    page: Page, api: httpx.Client, group: str
) -> None:
    for said in (
        "1 message is redelivered at once, to the next consumer that fetches.",
        "1 message is on its last delivery (max deliveries: 2): it becomes a dead letter with its body",
    ):
        assert fetched(api, group, limit=1) == [1]
        page.goto(f"{group}/pending/")
        page.get_by_label("Select 1", exact=True).check()
        page.get_by_label("Action", exact=True).select_option("nack")
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_text(said)).to_be_visible()
        page.get_by_role("button", name="Nack 1").click()
        expect(page.get_by_text("Nacked: 1.")).to_be_visible()
    page.get_by_role("navigation", name="Group").get_by_role("link", name="Overview").click()
    expect(figure(page, "dead_letters")).to_have_text("1", timeout=10_000)
    page.get_by_role("navigation", name="Group").get_by_role("link", name="Dead letters 1").click()
    letters = page.locator("#dead-letters")
    letters.get_by_role("link", name="1", exact=True).click()
    expect(letters.locator(".detail pre").first).to_contain_text('"n": 1')
    letters.get_by_role("button", name="Replay 1").click()
    expect(page.get_by_text("1 dead letter is redelivered.")).to_be_visible()
    assert fetched(api, group, limit=1) == [1]
    acked(api, group, [1])


@LOOKS
def test_retention_is_tightened_after_its_exact_loss_was_seen(
    log_in: OpenPage, api: httpx.Client, stream: str, group: str, look: dict[str, Any]
) -> None:
    acked(api, group, fetched(api, group, limit=2))
    page = log_in(**look)
    page.goto(f"/streams/{stream}/retention/")
    page.get_by_label("Max messages", exact=True).fill("4")
    effect = page.locator("#effect")
    expect(effect).to_contain_text("6 messages (42 B) are removed now.")
    expect(effect).to_contain_text("First offset afterwards: 7, as of offset 10.")
    expect(effect).to_contain_text("Group billing loses 4 unread messages.")
    assert api.get(f"/streams/{stream}").json()["messages"] == 10
    effect.get_by_role("button", name="Save and remove 6 messages").click()
    expect(page.get_by_text("That does not match. Nothing was done.")).to_be_visible()
    page.get_by_label(f"Type {stream} to confirm").fill(stream)
    page.get_by_role("button", name="Save and remove 6 messages").click()
    expect(page.get_by_text("Retention saved. 6 messages are being removed.")).to_be_visible()
    told = api.get(f"/streams/{stream}").json()
    assert (told["messages"], told["max_messages"], told["first_offset"]) == (4, 4, 7)


@LOOKS
def test_a_production_stream_is_purged_by_typing_its_name_and_comes_back(
    log_in: OpenPage, api: httpx.Client, stream: str, look: dict[str, Any]
) -> None:
    api.patch(f"/streams/{stream}", json={"labels": {"env": "production"}}).raise_for_status()
    publish(api, stream, *range(1, 8))
    page = log_in(**look)
    page.goto(f"/streams/?name={stream}")
    page.get_by_role("button", name=f"More actions for {stream}").click()
    page.get_by_role("link", name="Purge…").click()
    expect(page.get_by_text("This removes 7 messages")).to_be_visible()
    expect(page.get_by_role("link", name="Cancel")).to_be_focused()
    page.get_by_label("Purge", exact=True).select_option("All but the newest")
    page.get_by_label("Offset, time, number or key").fill("5")
    expect(page.get_by_text("This removes 2 messages")).to_be_visible()
    expect(page.get_by_label("Offset, time, number or key")).to_be_focused()
    page.get_by_label(f"Type {stream} to confirm").fill(stream.upper())
    page.get_by_role("button", name="Purge 2 messages").click()
    expect(page.get_by_text("That does not match. Nothing was done.")).to_be_visible()
    assert api.get(f"/streams/{stream}").json()["messages"] == 7
    page.get_by_label(f"Type {stream} to confirm").fill(stream)
    page.get_by_role("button", name="Purge 2 messages").click()
    expect(page.get_by_text("2 messages were purged.")).to_be_visible()
    assert api.get(f"/streams/{stream}").json()["messages"] == 5
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("2 messages were restored")).to_be_visible()
    expect(page.locator("[data-rows] tbody tr")).to_have_count(7)


def test_a_rule_is_tried_on_what_was_fires_with_a_badge_and_rests(
    page: Page, api: httpx.Client, stream: str, group: str, unique: str
) -> None:
    page.goto("/alerts/")
    address = page.get_by_label("Webhook URL").bounding_box()
    assert address is not None
    assert address["width"] > 480, "some 60 characters are read at once"

    def is_tried() -> bool:
        page.get_by_label("Name", exact=True).fill(unique)
        page.get_by_label("Stream", exact=True).fill(stream)
        page.get_by_label("Limit").fill("5")
        page.get_by_label("For at least").fill("")
        page.get_by_role("button", name="Dry run").click()
        return page.get_by_text("It would have fired 1 time").is_visible()

    until(is_tried, what="the worker has taken a sample of the group")
    assert not page.get_by_role("link", name=unique).is_visible()  # trying made nothing
    page.get_by_role("button", name="Create rule").click()
    expect(page.get_by_text(f"Rule {unique} was created.")).to_be_visible()

    firing = page.locator(".panel").filter(has=page.get_by_role("heading", name="Firing now"))

    def fires() -> bool:
        newer = firing.get_by_role("link", name="Refresh")
        if newer.is_visible():
            newer.click()
        return firing.get_by_role("row", name=unique).is_visible()

    until(fires, what="the worker has judged the rule")
    page.goto("/")
    expect(page.get_by_text(re.compile("^(An alert is firing|[0-9]+ alerts are firing)[.]$"))).to_be_visible()
    page.get_by_role("link", name=SOME_FIRE).click()  # rules of other tests may fire too
    expect(firing.get_by_role("row", name=unique)).to_contain_text(stream)
    acked(api, group, fetched(api, group, limit=10))
    page.get_by_role("row", name=unique).last.get_by_role("button", name="Turn off").click()
    page.goto(f"/alerts/{unique}/")
    for limit, times in (("500", "0 times"), ("5", "1 time,")):
        page.get_by_label("Limit").fill(limit)
        expect(page.get_by_text(f"It would have fired {times}")).to_be_visible()  # while it is typed
    page.get_by_role("link", name="Delete rule").click()
    page.get_by_label(f"Type {unique} to confirm").fill(unique)
    page.get_by_role("button", name="Delete rule").click()
    expect(page.get_by_text(f"Rule {unique} was deleted.")).to_be_visible()


def reach(page: Page, wanted: Locator) -> None:
    """By the Tab key alone, as somebody without a mouse."""
    for _ in range(150):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"The Tab key does not reach {wanted}.")


def test_a_group_is_found_sought_and_a_stream_purged_by_keys_alone(
    anonymous: OpenPage, api: httpx.Client, running: Product, stream: str, group: str
) -> None:
    acked(api, group, fetched(api, group, limit=6))
    page = anonymous()
    page.goto("/login/")
    expect(page.get_by_label("Username")).to_be_focused()
    page.keyboard.type("admin")
    page.keyboard.press("Tab")
    page.keyboard.type(running.password)
    page.keyboard.press("Enter")
    page.wait_for_url("/")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-input")).to_be_focused()
    page.keyboard.type(stream)
    expect(page.get_by_role("option", name=stream).first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url(f"/streams/{stream}/")
    page.keyboard.press("g")
    page.keyboard.press("g")
    page.wait_for_url(f"/streams/{stream}/groups/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{group}/")
    seek = page.locator("#seek")
    reach(page, seek.get_by_label("Seek to"))
    page.keyboard.type("Earliest message")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(seek.get_by_text("6 messages are redelivered.")).to_be_visible()
    reach(page, seek.get_by_role("button", name="Go to offset 1"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("The next offset is 1; it was 7.")).to_be_visible()
    page.wait_for_load_state()  # the text is there before the script that listens to keys
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("/streams/")
    page.keyboard.press("/")
    page.keyboard.type(stream)
    expect(page.locator("#stream-table tbody tr")).to_have_count(1)
    reach(page, page.get_by_label(f"Select {stream}"))
    page.keyboard.press("Space")
    reach(page, page.get_by_role("button", name="Purge…"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Cancel")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 stream was purged of 10 messages.")).to_be_visible()
