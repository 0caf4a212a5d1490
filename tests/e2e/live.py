"""What a live page promises, and how its tests look at it."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.waiting import Stopwatch, until

PROMISED_S = 1.5
"""From the answer to a change until a page that is open shows the number.

Of a machine of our own: a ``Stopwatch`` goes by it, which adds to the promise what other programs took, as
``okmq/prove/machine.py`` does. The longest way is a second until the next round of samples, and what the round, the
socket and the browser need.
"""


def is_live(page: Page) -> None:
    expect(page.locator("[data-live-word]")).to_have_text("Live", timeout=10_000)
    page.evaluate("window.notReloaded = true")


def value(page: Page, topic: str, field: str) -> str:
    return page.locator(
        f'[data-live="{topic}"][data-field="{field}"]:not([data-format=differs])'
    ).first.inner_text()


def soon(
    condition: Callable[[], bool], *, watch: Stopwatch, within_s: float = PROMISED_S, what: str = ""
) -> None:
    """It becomes so in time, since the watch was started.

    Asked for every few milliseconds: Playwright's own waiting looks only every half second at last.
    """
    until(condition, what=what)
    took_s = watch.elapsed_s
    assert took_s <= within_s, f"after {took_s:.2f} s: {what}"


def becomes(
    page: Page,
    topic: str,
    field: str,
    wanted: str,
    *,
    within_s: float = PROMISED_S,
    watch: Stopwatch | None = None,
) -> None:
    """A number is shown in time, since now or since the watch was started."""
    soon(
        lambda: value(page, topic, field) == wanted,
        watch=watch or Stopwatch(),
        within_s=within_s,
        what=f"{topic} {field} is {wanted}",
    )


def not_reloaded(page: Page) -> None:
    assert page.evaluate("window.notReloaded") is True
