"""axe finds nothing on any page, in light or dark; no page reports, fails or asks elsewhere while it is shown.

On a phone every page fits, and what a finger is for is large enough or stands alone. So it is for a viewer and an
observer on all that they may see; what their role does not allow is there, too, disabled and with the right it needs.
"""

import re
from base64 import b64encode
from collections.abc import Iterator
from gzip import compress
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.e2e.conftest import BrowserOf, Watched, publish
from tests.e2e.pages import State, states, states_for
from tests.product import Product
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.running]

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
SPARK = pytest.mark.spark, pytest.mark.timeout(400)
CODED = b64encode(compress(b'{"id":9007199254740993}')).decode()
DEAD = 4
"""The offset of the message that becomes a dead letter."""
PHONE: ViewportSize = {"width": 390, "height": 844}
STICKS_OUT = """
() => [...document.querySelectorAll("main *")].filter((each) => {
  const panel = each.closest(".panel");
  if (!panel || each.closest(".scroll, .tabs, .visually-hidden, svg, .uplot, [popover]")) return false;
  const { width, height, left, right } = each.getBoundingClientRect();
  const around = panel.getBoundingClientRect();
  return width && height && (left < around.left - 1 || right > around.right + 1);
}).map((each) => each.outerHTML.slice(0, 200))
"""

OVERFLOWING = """
(all) => all.filter((tab) => tab.scrollWidth > tab.clientWidth || tab.scrollHeight > tab.clientHeight)
  .map((tab) => tab.outerHTML)
"""


@pytest.fixture(scope="module")
def names(running: Product) -> dict[str, str]:
    """A stream with all that pages show: labels, groups that lag, what is out, dead, or can come back, a rule."""
    stream, group = "looked-at", "billing"
    with running.client() as api:
        for name in (stream, "looked-at-empty", "u2"):
            api.post("/streams/", json={"name": name, "labels": {"env": "production"}}).raise_for_status()
        rows: list[Any] = [{"n": n, "text": "é", "none": None, "is": True} for n in range(30)]
        rows[2] = CODED
        publish(api, stream, *rows)
        at = f"/streams/{stream}/groups/{group}"
        for name in (group, "idle"):
            wanted = {"name": name, "max_deliver": 3}
            api.post(f"/streams/{stream}/groups/", json=wanted).raise_for_status()
        api.post(f"{at}/fetch", json={"limit": 9, "wait": 0, "consumer": "one"}).raise_for_status()
        api.post(f"{at}/term", json={"offsets": [DEAD], "reason": "no price"}).raise_for_status()
        api.post(f"{at}/nack", json={"offsets": [5, 6]}).raise_for_status()
        api.post(f"{at}/fetch", json={"limit": 2, "wait": 0}).raise_for_status()
        for offset in range(20, 25):
            api.delete(f"/streams/{stream}/messages/{offset}", params={"undo": "true"}).raise_for_status()
        for page, query in (
            ("messages", "match=.n < 5"),
            ("streams", "name=looked"),
            ("events", "kind=stream."),
        ):
            kept = {"page": page, "name": "those of the warehouse in the north", "query": query}
            api.post("/filters/", json=kept).raise_for_status()
        rule = {"name": "lags", "stream": stream, "watch": "lag", "limit": 5, "for_seconds": 0}
        rule["webhook_url"] = "https://okmq.invalid/"
        api.post("/alerts/rules/", json=rule).raise_for_status()
    return {
        "stream": stream,
        "group": group,
        "empty": "looked-at-empty",
        "letter": str(DEAD),
        "rule": "lags",
        "person": "admin",
    }


@pytest.fixture(scope="module")
def query(running: Product) -> str:
    """The number of a query that is answered."""
    sql = "SELECT timestamp, offset, body FROM messages WHERE stream = 'looked-at' ORDER BY offset"
    with running.client() as api:
        api.post("/analytics/query", json={"sql": sql}).raise_for_status()

        def newest() -> str | None:
            told = api.get("/analytics/query").raise_for_status().json()[0]
            return str(told["id"]) if told["state"] == "succeeded" else None

        return until(newest, within_s=240, what="Spark has answered") or ""


@pytest.fixture
def page(request: pytest.FixtureRequest, browser_of: BrowserOf, watched: Watched) -> Iterator[Page]:
    """A page of the administrator's browser, or of somebody's with the role that a test names."""
    page = browser_of(getattr(request, "param", "admin")).new_page()
    watched.watch(page)
    yield page
    page.close()


def found(page: Page, *, rules: list[str] | None = None) -> list[str]:
    """What axe finds: the rule, what it asks for, and where."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    told = page.evaluate("options => axe.run(document, options)", options)
    assert told["testEngine"]["name"] == "axe-core"
    return [
        f"{wrong['id']}: {wrong['help']}: {node['html'][:200]} ({node['any'] and node['any'][0]['message']})"
        for wrong in told["violations"]
        for node in wrong["nodes"]
    ]


def found_in_both_lights(page: Page) -> list[str]:
    """What axe finds in light; and which colours it minds in dark, where nothing else differs."""
    page.emulate_media(color_scheme="light")
    light = found(page)
    page.emulate_media(color_scheme="dark")
    return [
        *light,
        *(f"dark: {wrong}" for wrong in found(page, rules=["color-contrast", "link-in-text-block"])),
    ]


def found_on_a_phone(page: Page) -> list[str]:
    """What is too wide for a narrow screen, and too small for a finger."""
    page.set_viewport_size(PHONE)
    wrong = [f"sticks out: {each}" for each in page.evaluate(STICKS_OUT)]
    if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
        wrong.append("the page scrolls sideways")
    return [*wrong, *found(page, rules=["target-size"])]


def tried() -> Iterator[Any]:
    """All states as the administrator, then what a viewer and an observer come to: one browser after another."""
    seen = {"admin": states(), "viewer": states_for("viewer"), "observer": states_for("observer")}
    for role, those in seen.items():
        for name, state in those:
            marks = SPARK if "{query}" in state.path else ()
            yield pytest.param(role, state, id=f"{role}, {name}", marks=marks)


@pytest.mark.parametrize(("page", "state"), list(tried()), indirect=["page"])
def test_axe_finds_nothing(
    page: Page, names: dict[str, str], state: State, request: pytest.FixtureRequest
) -> None:
    if "{query}" in state.path:
        names = {**names, "query": request.getfixturevalue("query")}
    state.shown(page, names)
    assert found_in_both_lights(page) == []
    assert found_on_a_phone(page) == []


@pytest.mark.parametrize(
    "path",
    [
        "/no-such-page/",
        "/streams/no-such-stream/",
        "/streams/{stream}/groups/no-such-group/",
        "/streams/{stream}/messages/999999/",
        "/streams/{stream}/?match=%28&start=soon",
        "/alerts/no-such-rule/",
        "/logout/",
    ],
)
def test_axe_finds_nothing_on_a_page_that_says_what_is_wrong(
    page: Page, names: dict[str, str], watched: Watched, path: str
) -> None:
    wrong = path.format(**names)
    watched.forgive("status of 40")
    watched.forgive(wrong)
    page.goto(wrong)
    assert found_in_both_lights(page) == []
    assert found_on_a_phone(page) == []


def test_axe_finds_nothing_while_the_server_is_away(
    page: Page, names: dict[str, str], watched: Watched
) -> None:
    """What is old is told apart, and can be read."""
    watched.forgive("ERR_INTERNET_DISCONNECTED")
    word = page.locator("[data-live-word]")
    for path in ("/", "/streams/", "/streams/{stream}/groups/", "/streams/{stream}/groups/{group}/"):
        page.goto(path.format(**names))
        expect(word).to_have_text("Live")
        page.context.set_offline(True)
        try:
            expect(word).to_have_text(re.compile("Reconnecting|Stale"))
            assert found_in_both_lights(page) == []
        finally:
            page.context.set_offline(False)


@pytest.mark.parametrize("page", ["observer"], indirect=True)
@pytest.mark.parametrize("width", [390, 320])
def test_tabs_that_a_role_does_not_open_make_no_page_wider(
    page: Page, names: dict[str, str], width: int
) -> None:
    """Each says in words for who listens which right it needs; the words lay beyond the edge once."""
    page.set_viewport_size({"width": width, "height": 844})
    for path in (
        "/streams/{stream}/",
        "/streams/{stream}/groups/",
        "/streams/{stream}/rates/",
        "/streams/{stream}/retention/",
        "/streams/{stream}/groups/{group}/",
    ):
        page.goto(path.format(**names))
        tabs = page.locator(".tabs a")
        expect(tabs.filter(has_text="This needs the role viewer.")).to_have_count(4)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert tabs.evaluate_all(OVERFLOWING) == [], path


def test_axe_finds_what_is_wrong(page: Page) -> None:
    page.goto("/")
    page.evaluate("""() => {
      document.querySelector("h1").style.color = "#eee";
      document.querySelector("main").append(new Image());
      const [small, wide] = [document.createElement("button"), document.createElement("p")];
      small.textContent = wide.textContent = "x";
      small.style.cssText = "width: 9px; height: 9px; padding: 0; border: 0";
      wide.style.width = "1200px";
      document.querySelector("section.panel").append(wide, small, small.cloneNode(true));
    }""")
    wrong = found_in_both_lights(page)
    assert any(each.startswith("image-alt") for each in wrong)
    assert any(each.startswith("color-contrast") for each in wrong)
    wrong = found_on_a_phone(page)
    assert any(each.startswith("target-size") for each in wrong)
    assert any(each.startswith("sticks out: <p") for each in wrong)
    assert "the page scrolls sideways" in wrong
