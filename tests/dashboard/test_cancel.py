"""Where a name has to be typed before something goes, there is a way back beside the button, and it has the focus."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from streams.models import Workspace
from tests.dashboard.conftest import MakeStream

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
SETTINGS = "/streams/orders/settings/"
ELSEWHERE = "/settings/workspaces/elsewhere/"
# A part of a form is looked at as a whole.
FORM = re.compile(r"<form\b.*?</form>", re.DOTALL)
ASKS = re.compile(r"field=\w+\.confirm\b")


def forms_of(path: Path) -> list[str]:
    text = path.read_text("utf-8")
    return FORM.findall(text) or [text]


ASKING = [
    pytest.param(form, id=f"{path.name} {number}")
    for path in sorted(TEMPLATES.rglob("*.html"))
    for number, form in enumerate(forms_of(path))
    if ASKS.search(form)
]


def focused(page: Any) -> list[str]:
    return re.findall(r"<[^>]* autofocus[^>]*>([^<]*)<", page.content.decode())


@pytest.mark.parametrize("form", ASKING)
def test_a_form_that_asks_for_a_name_has_a_way_back(form: str) -> None:
    assert '{% translate "Cancel" %}</a>' in form


def test_deleting_a_stream_is_asked_for_first_and_has_its_way_back(
    owner: Client, viewer: Client, make_stream: MakeStream
) -> None:
    make_stream("orders")
    page = owner.get(SETTINGS).content.decode()
    assert '<a class="btn btn-danger" href="?delete=1">' in page
    assert 'action="/streams/orders/delete/"' not in page
    question = owner.get(f"{SETTINGS}?delete=1")
    assert 'action="/streams/orders/delete/"' in question.content.decode()
    wrong = owner.post("/streams/orders/delete/", {"confirm": "order"})
    for asked in (question, wrong):
        assert focused(asked) == ["Cancel"]
        assert f'href="{SETTINGS}" autofocus' in asked.content.decode()
    assert "?delete=1" not in viewer.get(SETTINGS).content.decode()


def test_deleting_a_workspace_is_asked_for_first_and_has_its_way_back(
    owner: Client, elsewhere: Workspace
) -> None:
    page = owner.get(ELSEWHERE).content.decode()
    assert '<a class="btn btn-danger" href="?delete=1">' in page
    assert 'action="/settings/workspaces/elsewhere/delete/"' not in page
    question = owner.get(f"{ELSEWHERE}?delete=1")
    wrong = owner.post(f"{ELSEWHERE}delete/", {"confirm": "else"})
    for asked in (question, wrong):
        assert focused(asked) == ["Cancel"]
        assert f'href="{ELSEWHERE}" autofocus' in asked.content.decode()
    owner.post(f"{ELSEWHERE}delete/", {"confirm": "elsewhere"})
    assert not Workspace.objects.filter(name="elsewhere").exists()


def test_a_plan_that_takes_messages_has_its_way_back(
    owner: Client, make_stream: MakeStream, elsewhere: Workspace
) -> None:
    make_stream("orders", within=elsewhere, bodies=[b"1"] * 3, labels={"env": "production"})
    question = owner.post(ELSEWHERE, {"plan": "free", "do": "look"})
    assert f'href="{ELSEWHERE}"' in question.content.decode().partition("Streams with tighter limits")[2]
