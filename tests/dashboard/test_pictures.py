"""``scripts/screenshots`` asks for a picture of every page, and the documents show none that nobody takes."""

import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

import pytest
from django.urls import resolve

from okmq import env
from tests.e2e.pages import PAGES

SCRIPT = env.PROJECT / "scripts" / "screenshots"
STATES = {
    "a dead letter alone": "dead-letter",
    "what is replayed of the dead letters": "dead-letters-replay",
    "what is settled at the desk": "settle",
    "how the groups stand to a message": "message-groups",
    "a row that is open": "message",
    "a message before it is deleted": "message-delete",
    "a stream before it is purged": "purge-of-one",
    "what was removed, before that is final": "removal-end",
    "an own role before it is lowered": "person-role",
    "a rule before it is deleted": "alert-delete",
    "an erasure from the history": "erasures",
    "what a file changes": "configuration-plan",
}


@pytest.fixture(scope="module")
def screenshots() -> ModuleType:
    loader = SourceFileLoader("screenshots", str(SCRIPT))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def address(path: str) -> str:
    """The name of the address that a picture shows."""
    return resolve(re.split("[?#]", path)[0]).url_name or ""


def test_every_page_has_a_picture(screenshots: ModuleType) -> None:
    shown = {address(path) for path in screenshots.PAGES.values()}
    assert set(PAGES) - shown == set()


def test_every_state_that_says_more_than_the_first_look_has_a_picture(screenshots: ModuleType) -> None:
    assert {what for what, name in STATES.items() if name not in screenshots.PAGES} == set()


def test_every_picture_is_light_and_dark_and_some_are_german_or_of_a_phone(screenshots: ModuleType) -> None:
    pictures = screenshots.asked().keys()
    for name in ("overview", "configuration-plan-german", "messages-phone"):
        assert {f"{name}-light", f"{name}-dark"} <= pictures
    names = [*screenshots.PAGES, *screenshots.IN_GERMAN, *screenshots.ON_A_PHONE]
    assert len(pictures) == 2 * len(names)
    assert {*screenshots.DEEDS, *screenshots.AWAITED, *screenshots.IN_GERMAN} <= screenshots.PAGES.keys()


def test_no_picture_is_kept_or_shown_that_nobody_takes(screenshots: ModuleType) -> None:
    kept = {picture.stem for picture in (env.PROJECT / "docs" / "img").glob("*.png")}
    documents = [env.PROJECT / "README.md", *(env.PROJECT / "docs").glob("*.md")]
    shown = {
        name
        for document in documents
        for name in re.findall(r"img/([a-z0-9-]+)\.png", document.read_text("utf-8"))
    }
    assert shown
    assert (kept | shown) - screenshots.asked().keys() == set()
