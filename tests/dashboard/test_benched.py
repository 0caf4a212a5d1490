"""Every page that shows something is one whose time is measured."""

from django.urls import resolve

from bench import long_past, pages
from tests.e2e.pages import PAGES

NAMES = {
    "stream": "s",
    "group": "g",
    "rule": "r",
    "person": "p",
    "middle": 2,
    "removed": 3,
    "letter": 4,
    "query": 5,
}


def test_every_page_is_measured() -> None:
    measured = (*pages.PAGES, pages.LOGIN, *long_past.PAGES.values(), long_past.ANSWER)
    found = {resolve(page.format(**NAMES).partition("?")[0]).url_name for page in measured}
    assert set(PAGES) - found == set()
