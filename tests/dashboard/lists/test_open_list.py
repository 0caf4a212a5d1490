"""A list of streams that is open: it asks again for what no socket tells."""

import re
from html import unescape

import pytest
from django.http import QueryDict
from django.test import Client

from streams.access import SYSTEM
from streams.models import Group, Stream
from streams.services.streams import stream_delete
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import make_group
from tests.dashboard.verdicts import judged


@pytest.fixture
def three(make_stream: MakeStream) -> list[Stream]:
    """Streams without a group, with two, and with one."""
    streams = [make_stream(name) for name in ("a", "b", "c")]
    for place, name in ((1, "g1"), (1, "g2"), (2, "g1")):
        Group.objects.create(stream=streams[place], name=name)
    return streams


def again(client: Client, query: str = "", **changed: str) -> dict[str, str]:
    """What a list that was opened asks for again and is told: by element, the text."""
    page = client.get(f"/streams/?{query}").content.decode()
    (asks,) = re.findall(
        r'hx-get="([^"]*)" hx-trigger="okmq:quarter-minute from:document" hx-swap="none"', page
    )
    path, _, parameters = unescape(asks).partition("?")
    told = client.get(path, QueryDict(parameters).dict() | changed, headers={"HX-Request": "true"})
    assert told.status_code == 200
    cells = re.findall(r'<(a|span) id="([\w-]+)" hx-swap-oob="true"[^>]*>(.*?)</\1>', told.content.decode())
    assert all(f'id="{name}"' in page for _tag, name, _text in cells)
    return {name: cell for _tag, name, cell in cells}


def test_an_open_list_follows_what_the_groups_of_its_streams_come_to(
    viewer: Client, three: list[Stream]
) -> None:
    a, b, c = (stream.pk for stream in three)
    assert again(viewer) == {f"groups-of-{a}": "0", f"groups-of-{b}": "2", f"groups-of-{c}": "1"}
    make_group(three[0], "late")
    judged(three[0], "late", "ok", pending=7, dead=1200)
    viewer.post("/streams/_columns/", {"column": ["groups", "pending", "dead"]})
    of_a = {f"groups-of-{a}": "1", f"pending-of-{a}": "7", f"dead-of-{a}": "1,200"}
    assert of_a.items() <= again(viewer).items()
    assert again(viewer, "name=a&sort=-groups") == of_a
    viewer.post("/streams/_columns/", {"column": ["messages"]})
    assert "quarter-minute" not in viewer.get("/streams/").content.decode()


def test_an_open_list_is_told_of_no_other_streams(
    viewer: Client, stranger: Client, three: list[Stream]
) -> None:
    keys = ".".join(str(stream.pk) for stream in three)
    for rows in ("", "x", "-1", "9" * 5000, f"{three[0].pk}.{2**63}"):
        assert again(viewer, rows=rows).keys() <= {f"groups-of-{three[0].pk}"}, rows
    told = stranger.get("/streams/", {"rows": keys}, headers={"HX-Request": "true"})
    assert "groups-of" not in told.content.decode()
    stream_delete(three[0], actor=SYSTEM)
    told = viewer.get("/streams/", {"rows": keys}, headers={"HX-Request": "true"})
    assert told.content.decode().count("hx-swap-oob") == 2
