"""What is in a field that cannot be changed can be read, in light and dark: axe leaves disabled fields out."""

from typing import Any

import httpx
import pytest
from playwright.sync_api import Page

from tests.e2e.conftest import OpenPage, join
from tests.product import Product

pytestmark = [pytest.mark.e2e, pytest.mark.running]

LEAST = 4.5
"""Of WCAG's contrast (AA), which it asks of text that is not disabled."""

CONTRASTS = """
() => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const painted = (layers) => {
    paint.globalAlpha = 1;
    for (const [colour, alpha] of layers) {
      paint.globalAlpha = alpha;
      paint.fillStyle = colour;
      paint.fillRect(0, 0, 1, 1);
    }
    return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (colour) => {
    const [red, green, blue] = colour
      .map((each) => each / 255)
      .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const around = (each) =>
    each ? [...around(each.parentElement), [getComputedStyle(each).backgroundColor, 1]] : [["#fff", 1]];
  const contrast = (each, pseudo) => {
    const style = getComputedStyle(each, pseudo);
    const behind = around(each.parentElement);
    const alpha = Number(getComputedStyle(each).opacity);
    const ground = [...behind, [getComputedStyle(each).backgroundColor, alpha]];
    const [ink, paper] = [[...ground, [style.color, alpha]], ground].map(painted).map(light);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  };
  const disabled = [...document.querySelectorAll("main :is(input, select, textarea):disabled")];
  const found = [];
  for (const each of disabled.filter((each) => each.checkVisibility())) {
    if (each.type === "checkbox") {
      for (const label of each.labels) found.push([`label of ${each.name}`, contrast(label)]);
    } else {
      found.push([each.name, contrast(each)]);
      if (each.placeholder) found.push([`placeholder of ${each.name}`, contrast(each, "::placeholder")]);
    }
  }
  return found;
}
"""


def contrasts(page: Page) -> dict[str, float]:
    """Of the text in every disabled field to what is behind it."""
    found: list[Any] = page.evaluate(CONTRASTS)
    return dict(found)


def in_every_light(page: Page, path: str) -> dict[str, dict[str, float]]:
    """The same in light and dark, as the system says and as the person chose against it."""
    found = {}
    for system in ("light", "dark"):
        page.emulate_media(color_scheme=system)
        page.goto(path)
        found[f"{system} system"] = contrasts(page)
        other = "dark" if system == "light" else "light"
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", other)
        found[f"{other} by choice"] = contrasts(page)
    return found


def unreadable(found: dict[str, dict[str, float]]) -> dict[str, float]:
    """What is below the least, with where that is."""
    return {
        f"{name}, {light}": round(contrast, 2)
        for light, names in found.items()
        for name, contrast in names.items()
        if contrast < LEAST
    }


def test_what_a_viewer_may_not_change_can_be_read(
    anonymous: OpenPage, running: Product, api: httpx.Client, stream: str, unique: str
) -> None:
    wanted = {"name": "billing", "description": "bills", "ordered_by_key": True, "inactive_after": 3600}
    api.post(f"/streams/{stream}/groups/", json=wanted).raise_for_status()
    rule = {"name": unique, "stream": stream, "watch": "lag", "limit": 5}
    api.post("/alerts/rules/", json=rule).raise_for_status()
    page = anonymous()
    join(page, running, role="viewer")
    for path, fields in (
        (
            f"/streams/{stream}/groups/billing/settings/",
            {"ack_wait", "ack", "description", "label of ordered_by_key"},
        ),
        (f"/streams/{stream}/settings/", {"description", "labels", "keys", "label of archive"}),
    ):
        found = in_every_light(page, path)
        for light, names in found.items():
            assert fields <= names.keys(), (path, light)
        assert unreadable(found) == {}, unreadable(found)


def test_the_desk_with_nothing_in_flight_can_be_read(page: Page, api: httpx.Client, stream: str) -> None:
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    found = in_every_light(page, f"/streams/{stream}/groups/billing/pending/")
    assert all({"what", "scope", "placeholder of delay"} <= names.keys() for names in found.values())
    assert unreadable(found) == {}, unreadable(found)
