"""The runs on the History tab: pages, those that failed, and the whole error of one."""

import re

from django.test import Client

from streams.models import Run, Workspace
from tests.dashboard.conftest import MakeStream

PAGE = "/streams/orders/history/"
PART = f"{PAGE}runs/"

LONG = "The archive could not be written: " + "a cause of it; " * 60 + "and the last word."


def ran(state: str, error: str = "") -> int:
    """A run that has ended; its number."""
    return Run.objects.create(job="archive", state=state, error=error).pk


def numbers(page: str) -> list[int]:
    """The numbers of the runs that a page or part has, in their order."""
    return [int(found) for found in re.findall(r'<td class="nowrap">#([\d,]+) archive', page)]


def link(page: str, name: str) -> str:
    """Where a link of the panel leads; empty where there is none."""
    found = re.search(rf'id="{name}"[^>]* href="([^"#]*)#runs"', page)
    return found[1].replace("&amp;", "&") if found else ""


def again(client: Client, page: str) -> str:
    """The panel as htmx has it asked for again."""
    asked = re.search(rf'hx-get="({PART}[^"]*)"', page)
    assert asked
    address = asked[1].replace("&amp;", "&")
    return client.get(address, headers={"HX-Request": "true"}).content.decode()


def test_a_failed_run_is_reached_however_many_came_after_it(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    failed = ran("failed", "No space left.")
    later = [ran("succeeded") for _ in range(14)][::-1]
    address, seen = f"{PAGE}?range=7d", []
    while address:
        page = owner.get(address).content.decode()
        part = again(owner, page)
        assert numbers(part) == numbers(page)
        seen += numbers(page)
        address = link(part, "runs-older")
        assert "range=7d" in (address or "range=7d")
    assert seen == [*later, failed]
    assert "No space left." in part
    assert numbers(owner.get(link(part, "runs-newest")).content.decode()) == later[:6]


def test_those_that_failed_are_shown_alone(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    failed: list[int] = []
    for _ in range(8):
        failed.insert(0, ran("failed", "No space left."))
        ran("succeeded")
    first = owner.get(link(owner.get(PAGE).content.decode(), "runs-failed")).content.decode()
    assert numbers(first) == numbers(again(owner, first)) == failed[:6]
    second = owner.get(link(first, "runs-older")).content.decode()
    assert numbers(second) == failed[6:]
    assert len(numbers(owner.get(link(second, "runs-all")).content.decode())) == 6


def test_where_none_failed_that_is_said(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    last = ran("succeeded")
    page = owner.get(f"{PAGE}?runs=failed").content.decode()
    assert "No run has failed." in page
    assert link(page, "runs-all")
    assert "No older runs." in owner.get(f"{PAGE}?runs_before={last}").content.decode()
    assert numbers(owner.get(f"{PAGE}?runs_before=x&run=y").content.decode()) == [last]


def test_the_whole_error_is_opened_and_stays_open(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    failed, short = ran("failed", LONG), ran("failed", "No space left.")
    page = owner.get(PAGE).content.decode()
    assert LONG not in page
    assert not link(page, f"run-{short}-error")
    opened = owner.get(link(page, f"run-{failed}-error")).content.decode()
    assert LONG in opened
    assert LONG in again(owner, opened)
    assert LONG not in owner.get(link(opened, f"run-{failed}-error")).content.decode()


def test_another_workspace_opens_no_error(stranger: Client, make_stream: MakeStream) -> None:
    make_stream("orders", within=Workspace.objects.get(name="elsewhere"))
    failed = ran("failed", LONG)
    page = stranger.get(f"{PAGE}?run={failed}").content.decode()
    assert numbers(page) == [failed]
    assert "a cause of it" not in page
