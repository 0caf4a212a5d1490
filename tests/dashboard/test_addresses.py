"""Every address of the console is a page that Chromium is tried on, or said to be none."""

from dashboard.urls import urlpatterns
from tests.e2e.pages import NO_PAGES, PAGES


def test_every_address_is_a_page_with_a_row_or_said_to_be_none() -> None:
    addresses = {pattern.name for pattern in urlpatterns}
    assert set(PAGES) | NO_PAGES == addresses
    assert set(PAGES) & NO_PAGES == set()
