"""A real Chromium against the really running product; a page that misbehaves fails its test by itself."""

import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    BrowserType,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from tests.product import Product
from tests.waiting import LONG_ENOUGH_S

# What a page promises in time has a time of its own in its test.
expect.set_options(timeout=LONG_ENOUGH_S * 1000)

CHROMIUM = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI}`));
"""


# One package long, not a session: while Playwright's loop stands, no other test could run one of its own.
@pytest.fixture(scope="package")
def chromium() -> Iterator[BrowserType]:
    with sync_playwright() as playwright:
        yield playwright.chromium


@pytest.fixture(scope="package")
def browser(chromium: BrowserType) -> Iterator[Browser]:
    started = chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    yield started
    started.close()


@dataclass
class Watched:
    """What a browser did that it should not: errors, refusals of the policy, requests to other hosts."""

    own: str
    wrongs: list[str] = field(default_factory=list)
    forgiven: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.add_init_script(TELL_VIOLATIONS)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.wrongs.append(f"error: {error}"))
        page.on("request", self._requested)
        page.on("response", self._answered)
        page.on("dialog", lambda dialog: self.wrongs.append(f"dialog: {dialog.message}"))

    def forgive(self, part: str) -> None:
        """Something that this test provokes on purpose."""
        self.forgiven.append(part)

    @property
    def unforgiven(self) -> list[str]:
        return [wrong for wrong in self.wrongs if not any(part in wrong for part in self.forgiven)]

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.wrongs.append(f"{message.type}: {message.text}")

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((self.own, "data:", "blob:")):
            self.wrongs.append(f"request to {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.wrongs.append(f"{response.status} {response.url}")


OpenPage = Callable[..., Page]
BrowserOf = Callable[[str], BrowserContext]


@pytest.fixture
def watched(running: Product) -> Iterator[Watched]:
    watched = Watched(running.url)
    yield watched
    assert watched.unforgiven == []


@pytest.fixture
def anonymous(browser: Browser, running: Product, watched: Watched) -> Iterator[OpenPage]:
    """``anonymous(viewport=…, color_scheme=…)``: a page of a fresh browser, not logged in."""
    contexts: list[BrowserContext] = []

    def open_page(**options: Any) -> Page:
        context = browser.new_context(
            base_url=running.url, **{"viewport": {"width": 1280, "height": 800}, **options}
        )
        contexts.append(context)
        page = context.new_page()
        watched.watch(page)
        return page

    yield open_page
    for context in contexts:
        context.close()


def sign_in(page: Page, running: Product) -> None:
    """Log the page's browser in as the administrator."""
    page.goto("/login/")
    fill_in_login(page, "admin", running.password)
    page.wait_for_url("/")


def fill_in_login(page: Page, name: str, password: str) -> None:
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def join(page: Page, running: Product, *, role: str) -> str:
    """Log the page's browser in as somebody new with a role, who has the administrator's password; their name."""
    name = f"{role}-{secrets.token_hex(6)}"
    with running.client() as api:
        made = api.post("/users/", json={"name": name, "role": role}).raise_for_status().json()
    page.goto("/login/")
    fill_in_login(page, name, made["password"])
    page.get_by_label("New password", exact=True).fill(running.password)
    page.get_by_label("New password confirmation").fill(running.password)
    page.get_by_role("button", name="Change password").click()
    page.wait_for_url("/")
    return name


@pytest.fixture(scope="module")
def browser_of(browser: Browser, running: Product) -> Iterator[BrowserOf]:
    """``browser_of("viewer")``: a browser of each role for all tests of a file that only look; nothing moves in it."""
    opened: dict[str, BrowserContext] = {}

    def of(role: str) -> BrowserContext:
        if role not in opened:
            context = browser.new_context(
                base_url=running.url, viewport={"width": 1280, "height": 800}, reduced_motion="reduce"
            )
            page = context.new_page()
            if role == "admin":
                sign_in(page, running)
            else:
                join(page, running, role=role)
            page.close()
            opened[role] = context
        return opened[role]

    yield of
    for context in opened.values():
        context.close()


@pytest.fixture(scope="module")
def logged_in(browser_of: BrowserOf) -> BrowserContext:
    """The browser of the administrator for all tests of a file that only look."""
    return browser_of("admin")


@pytest.fixture
def shared_page(logged_in: BrowserContext, watched: Watched) -> Iterator[Page]:
    """A page of the file's one browser."""
    page = logged_in.new_page()
    watched.watch(page)
    yield page
    page.close()


@pytest.fixture
def log_in(anonymous: OpenPage, running: Product) -> OpenPage:
    """As ``anonymous``, logged in as the administrator."""

    def open_page(**options: Any) -> Page:
        page = anonymous(**options)
        sign_in(page, running)
        return page

    return open_page


@pytest.fixture
def page(log_in: OpenPage) -> Page:
    return log_in()


@pytest.fixture
def api(running: Product) -> Iterator[httpx.Client]:
    with running.client() as client:
        yield client


@pytest.fixture
def stream(api: httpx.Client, unique: str) -> str:
    """A stream of this test's own, empty."""
    api.post("/streams/", json={"name": unique}).raise_for_status()
    return unique


def publish(api: httpx.Client, stream: str, *bodies: Any, start: int = 1) -> None:
    """Publish bodies with ids of their own."""
    messages = [{"id": f"m{number}", "body": body} for number, body in enumerate(bodies, start=start)]
    api.post(f"/streams/{stream}/messages", json=messages).raise_for_status()
