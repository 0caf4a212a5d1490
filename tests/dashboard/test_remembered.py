"""What a person chose is kept in their browser: for no script, no other site, and over TLS only where it came so."""

import pytest
from django.test import Client
from django.urls import reverse

from streams.models import Workspace
from tests.dashboard.conftest import MakeStream

CHOICES = [
    ("/theme/", {"theme": "dark"}, "okmq_theme"),
    ("/language/", {"language": "de"}, "okmq_language"),
    ("/zone/", {"zone": "Europe/Berlin"}, "okmq_zone"),
    ("/streams/_columns/", {"column": ["name"]}, "okmq_columns"),
    ("/workspace/", {"workspace": "default"}, "okmq_workspace"),
]


@pytest.mark.parametrize("is_secure", [True, False])
@pytest.mark.parametrize(("address", "chosen", "cookie"), CHOICES)
def test_a_choice_is_for_the_console_alone(
    owner: Client, workspace: Workspace, address: str, chosen: dict[str, str], cookie: str, is_secure: bool
) -> None:
    kept = owner.post(address, chosen, secure=is_secure).cookies[cookie]
    assert kept["secure"] == (True if is_secure else "")
    assert (kept["httponly"], kept["samesite"], kept["max-age"]) == (True, "Lax", 365 * 86_400)


@pytest.mark.parametrize("is_secure", [True, False])
def test_a_reading_is_for_the_pages_of_its_stream(
    owner: Client, make_stream: MakeStream, is_secure: bool
) -> None:
    make_stream("orders")
    page = reverse("dashboard:stream_messages", args=["orders"])
    kept = owner.get(f"{page}?decode=base64", secure=is_secure).cookies["okmq-decode"]
    assert kept["secure"] == (True if is_secure else "")
    assert (kept["httponly"], kept["samesite"], kept["path"]) == (True, "Lax", page)
