"""A page that is saved as a file holds what the page shows, and nothing that moves or asks."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from dashboard.snapshot.drawn import chart_drawn
from dashboard.snapshot.frozen import frozen
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import BODIES, PAGE, make_group
from tests.dashboard.verdicts import judged


class Held(HTMLParser):
    """The names of a page's elements and of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def inside(text: str) -> str:
    return text.partition("</head>")[2]


@pytest.fixture
def orders(make_stream: MakeStream) -> None:
    group = make_group(make_stream("orders", bodies=BODIES))
    judged(group.stream, "billing", "slow", lag=20, acked=(0, 20, 40))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("/", "Needs attention"),
        ("/streams/", "orders"),
        ("/streams/orders/", "20"),
        (PAGE, "It is slow."),
        ("/events/", "stream.created"),
        ("/sql/", "messages"),
    ],
)
def test_a_saved_page_holds_what_it_shows(owner: Client, orders: None, address: str, shown: str) -> None:
    answer = owner.get(f"{address}?snapshot=1")
    assert answer.status_code == 200
    assert re.fullmatch(
        r'attachment; filename="okmq-[a-z0-9-]+-\d{4}-\d\d-\d\dT\d{6}Z\.html"',
        answer.headers["Content-Disposition"],
    )
    assert answer.headers["Cache-Control"] == "private, no-store"
    page = inside(answer.content.decode())
    assert shown in page
    assert f"http://testserver{address}" in page
    assert "snapshot=1" not in page


def test_a_saved_page_asks_for_nothing(owner: Client, orders: None) -> None:
    text = owner.get(f"{PAGE}?snapshot=1&range=hour").content.decode()
    assert "default-src 'none'" in text
    page = inside(text)
    held = Held()
    held.feed(page)
    assert not held.tags & {"script", "form", "input", "button", "nav", "link", "img", "iframe"}
    assert not [name for name in held.attributes if name.startswith(("hx-", "on", "data-live"))]
    led_to = re.findall(r'href="([^"]*)"', page)
    assert led_to
    assert all(each.startswith(("http://testserver/", "#")) for each in led_to)
    named = {each[1:] for each in led_to if each.startswith("#")}
    assert named <= set(re.findall(r'\sid="([^"]*)"', page))
    assert all(" open" in each for each in re.findall(r"<details[^>]*>", page))


def test_its_charts_are_drawn(owner: Client, orders: None) -> None:
    page = inside(owner.get(f"{PAGE}?snapshot=1").content.decode())
    charts = re.findall(r'<div class="chart"[^>]*>(.*?)</div>', page, re.DOTALL)
    assert len(charts) == 2
    assert all(ElementTree.fromstring(chart).findall("path") for chart in charts)


@pytest.mark.parametrize("address", ["/streams/none/", "/nothing/"])
def test_what_is_refused_is_no_file(owner: Client, address: str) -> None:
    answer = owner.get(f"{address}?snapshot=1")
    assert answer.status_code == 404
    assert "Content-Disposition" not in answer.headers


def test_a_part_of_a_page_is_no_file(owner: Client, orders: None) -> None:
    answer = owner.get(f"{PAGE}?snapshot=1", headers={"HX-Request": "true"})
    assert "Content-Disposition" not in answer.headers


def test_nobody_saves_more_than_they_see(observer: Client, orders: None) -> None:
    assert observer.get("/streams/orders/messages/1/?snapshot=1").status_code == 403
    assert observer.get(f"{PAGE}?snapshot=1").status_code == 200


def test_text_stays_text_and_titles_of_pictures_are_none_of_the_page() -> None:
    page = (
        "<title>A &amp; B</title><main><p title='a&quot;b' onclick=\"x()\" hx-get='/a'>&lt;b&gt; &amp;lt;</p>"
        "<svg><title>one</title><use href='/static/img/icons.svg#streams'/></svg>"
        "<form method='post'><input name='a'><textarea>SELECT 1 &lt; 2</textarea><button>Go <b>on</b></button></form>"
        "<form><p>asks</p></form><details><summary>s</summary></details></main><p>outside</p>"
    )
    reader = frozen(page, address="http://a/b/")
    assert reader.title == "A & B"
    assert reader.icons == {"streams"}
    assert reader.kept == (
        '<p title="a&quot;b">&lt;b&gt; &amp;lt;</p>'
        '<svg><title>one</title><use href="#streams"/></svg>'
        "<pre>SELECT 1 &lt; 2</pre><details open><summary>s</summary></details>"
    )


VALUES = st.lists(
    st.one_of(st.none(), st.floats(-1e9, 1e12), st.integers(0, 10**15)), min_size=1, max_size=30
)


@given(values=VALUES, kind=st.sampled_from(["live", "line", "bars"]), has_line=st.booleans())
def test_every_value_is_drawn_where_it_is(values: list[float | None], kind: str, has_line: bool) -> None:
    seed = {
        "times": [1_700_000_000 + 60 * place for place in range(len(values))],
        "step_s": 60,
        "window_s": 60 * len(values),
        "messages": values,
        "marks": [[1_700_000_000, "<purged>"]],
        **({"before": values} if has_line else {}),
    }
    chart = {"series": "messages", "line": "before", "kind": kind, "format": "size", "label": '"a"'}
    known = [value for value in values if value is not None]
    drawn = chart_drawn(seed, chart)
    if not known:
        assert drawn == ""
        return
    picture = ElementTree.fromstring(drawn)
    lines = [path.attrib["d"] for path in picture.findall("path") if path.attrib.get("stroke-width") == "1.5"]
    bars = picture.findall("rect")
    assert len(bars) == (len(known) if kind == "bars" else 0)
    assert len(lines) == (kind != "bars") + has_line
    for line in lines:
        assert len(re.findall(r"[ML]", line)) == len(known)


def test_a_chart_has_its_ends_written() -> None:
    seed = {"times": [1_700_000_000, 1_700_000_060], "step_s": 60, "messages": [1, 2]}
    drawn = chart_drawn(seed, {"series": "messages", "kind": "bars"})
    assert re.findall(r">(\d{4}-\d\d-\d\d \d\d:\d\d)<", drawn) == ["2023-11-14 22:13", "2023-11-14 22:15"]
