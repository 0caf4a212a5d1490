"""The list of streams: narrowed, ordered, its columns, and deeds to several at once."""

import csv
import dataclasses
import io
import re
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from dashboard.lists.stream_list import SORTS
from streams import selectors, store
from streams.access import SYSTEM, Actor
from streams.log.append import append
from streams.log.commit import commit
from streams.log.entries import NewMessage
from streams.models import Group, Stream
from streams.services.streams import internal_stream, stream_delete
from streams.services.undo import removal_undo
from tests.dashboard.conftest import MakeStream, sampled_ago, sees_all
from tests.dashboard.groups.test_groups import make_group
from tests.dashboard.verdicts import judged


@pytest.fixture
def three(make_stream: MakeStream) -> list[Stream]:
    """a: 1 of 10 messages; b: 3 messages, production, two groups; c: 2 of 4 messages, one group."""
    a = make_stream("a", bodies=[b"1"], max_messages=10, labels={"env": "test", "team": "x"})
    b = make_stream("b", bodies=[b"1", b"22", b"333"], labels={"env": "production"})
    c = make_stream("c", bodies=[b"1", b"2"], max_messages=4)
    for stream, name in ((b, "g1"), (b, "g2"), (c, "g1")):
        Group.objects.create(stream=stream, name=name)
    return [a, b, c]


def names(client: Client, query: str = "") -> list[str]:
    return [row.name for row in client.get(f"/streams/?{query}").context["page"].rows]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sort=-groups", ["b", "c", "a"]),
        ("sort=groups", ["a", "c", "b"]),
        ("sort=-keeps", ["c", "a", "b"]),
        ("sort=created", ["a", "b", "c"]),
        ("sort=-created", ["c", "b", "a"]),
        ("label=env:production", ["b"]),
        ("label=env%3Dtest&label=team:x", ["a"]),
        ("label=env:test&label=team:y", []),
        ("label=nonsense", ["a", "b", "c"]),
        ("label=%22:x", ["a", "b", "c"]),
        ("label=-1:x", ["a", "b", "c"]),
        ("label=0:x", ["a", "b", "c"]),
        ("label=__:x", []),
        ("label=a.b:x", []),
        ("size=25", ["a", "b", "c"]),
        ("size=7&page=x", ["a", "b", "c"]),
    ],
)
def test_the_list_is_narrowed_and_ordered(
    viewer: Client, three: list[Stream], query: str, expected: list[str]
) -> None:
    assert names(viewer, query) == expected


def test_the_columns_that_were_chosen_are_remembered(viewer: Client, three: list[Stream]) -> None:
    answer = viewer.post(
        "/streams/_columns/", {"column": ["created", "bytes", "x"], "next": "/streams/?sort=-bytes"}
    )
    assert answer["Location"] == "/streams/?sort=-bytes"
    page = viewer.get("/streams/")
    assert page.context["shown"] == {"created", "bytes"}
    headings = re.findall(r'<th scope="col"[^>]*><a[^>]*>([^<]*)', page.content.decode())
    assert [heading.strip() for heading in headings] == ["Name", "Size", "Created"]


def test_the_systems_own_streams_are_shown_to_who_rules_all_when_asked(
    owner: Client, viewer: Client, three: list[Stream]
) -> None:
    internal_stream("_metrics")
    assert names(owner) == ["a", "b", "c"]
    assert names(owner, "internal=1") == ["_metrics", "a", "b", "c"]
    assert names(viewer, "internal=1") == ["a", "b", "c"]


def test_a_label_with_markup_is_text_and_its_link_finds_its_streams(
    viewer: Client, make_stream: MakeStream
) -> None:
    make_stream("a", labels={"note": "<b onclick=x>&\u202e"})
    page = viewer.get("/streams/").content.decode()
    assert "<b onclick" not in page
    (address,) = re.findall(r'class="chip label" href="/streams/\?([^"]*)"', page)
    assert names(viewer, address) == ["a"]


def test_a_stream_shows_its_worst_group_with_the_reason_and_the_lag_in_time(
    viewer: Client, three: list[Stream]
) -> None:
    b = three[1]
    judged(b, "g1", "ok", lag_ms=1000)
    judged(b, "g2", "stalled", lag_ms=125_000)
    page = viewer.get("/streams/")
    worst = {
        row.name: row.worst and (row.worst.name, row.worst.verdict.status)
        for row in page.context["page"].rows
    }
    assert worst == {"a": None, "b": ("g2", "stalled"), "c": ("g1", "unknown")}
    text = page.content.decode()
    assert "stalled · 2 min 5 s" in strip_tags(text)
    assert 'title="g2: It is stalled."' in text


def test_a_group_that_is_not_well_colours_the_dot_of_its_stream_and_stands_on_each_of_its_pages(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[b"1"])
    make_group(stream, "billing")
    judged(stream, "billing", "losing", lag_ms=65_000)
    dot = 'data-format="health" data-state="active" data-worst="bad"'
    assert dot in viewer.get("/streams/").content.decode()
    for tab in ("", "publish/", "retention/"):
        page = viewer.get(f"/streams/orders/{tab}").content.decode()
        assert dot in page
        verdict = page.partition('href="/streams/orders/groups/?sort=-status" title="billing: ')[2]
        assert 'data-format="word">losing</span>' in verdict[:1000]


def test_streams_are_ordered_by_their_worst_group_and_those_without_one_come_last(
    viewer: Client, three: list[Stream]
) -> None:
    _, b, c = three
    judged(b, "g1", "ok")
    judged(b, "g2", "stalled")
    judged(c, "g1", "slow")
    assert names(viewer, "sort=-status") == ["b", "c", "a"]
    assert names(viewer, "sort=status") == ["c", "b", "a"]


def test_streams_are_ordered_by_what_their_groups_have_in_flight_and_dead(
    viewer: Client, three: list[Stream]
) -> None:
    _, b, c = three
    judged(b, "g1", "ok", pending=2, dead=9)
    judged(b, "g2", "ok", pending=2)
    judged(c, "g1", "ok", pending=3, dead=1)
    assert names(viewer, "sort=-pending") == ["b", "c", "a"]
    assert names(viewer, "sort=pending") == ["c", "b", "a"], "without a group there is nothing to compare"
    assert names(viewer, "sort=-dead") == ["b", "c", "a"]
    assert names(viewer, "sort=dead") == ["c", "b", "a"]


def test_the_whole_list_is_exported_as_csv(
    viewer: Client, three: list[Stream], make_stream: MakeStream
) -> None:
    make_stream("d", labels={"note": "=1+1"})
    head, *rows = csv.reader(io.StringIO(viewer.get("/streams/_export/?name=&sort=-name").content.decode()))
    assert head[:3] == ["name", "messages", "bytes"]
    assert [row[:3] for row in rows] == [["d", "0", "0"], ["c", "2", "2"], ["b", "3", "6"], ["a", "1", "1"]]
    assert rows[3][head.index("labels")] == "env:test team:x"


@pytest.mark.parametrize("column", SORTS)
def test_the_file_has_the_order_of_the_list(viewer: Client, three: list[Stream], column: str) -> None:
    judged(three[1], "g2", "stalled", pending=5, dead=2)
    for sort in (column, f"-{column}"):
        rows = csv.reader(io.StringIO(viewer.get(f"/streams/_export/?sort={sort}").content.decode()))
        assert [name for name, *_ in rows][1:] == names(viewer, f"sort={sort}"), sort


def test_the_file_tells_rates_groups_and_how_much_of_a_limit_is_used(
    viewer: Client, three: list[Stream]
) -> None:
    judged(three[1], "g2", "stalled", pending=5, dead=2)
    told = {
        row["name"]: [row[column] for column in ("used", "rate_in", "bytes_in", "rate_out")]
        + [row[column] for column in ("groups", "worst_group", "worst_status", "in_flight", "dead_letters")]
        for row in csv.DictReader(io.StringIO(viewer.get("/streams/_export/").content.decode()))
    }
    at_rest = ["0.000"] * 3
    assert told == {
        "a": ["0.100", *at_rest, "0", "", "", "0", "0"],
        "b": ["", *at_rest, "2", "g2", "stalled", "5", "2"],
        "c": ["0.500", *at_rest, "1", "g1", "unknown", "", ""],
    }
    sampled_ago(ms=60_000)
    rows = csv.DictReader(io.StringIO(viewer.get("/streams/_export/").content.decode()))
    assert [row["rate_in"] for row in rows] == ["", "", ""]


def test_a_bulk_purge_says_first_what_would_go(owner: Client, three: list[Stream]) -> None:
    page = owner.get("/streams/_bulk/?do=purge&stream=a&stream=c&stream=nowhere")
    assert "This removes 3 messages (3 B)" in page.content.decode()
    assert selectors.stream_view(three[0]).state.messages == 1
    assert owner.post("/streams/_bulk/?do=purge&stream=a&stream=c", {"seen": 3}).status_code == 302
    assert [selectors.stream_view(stream).state.messages for stream in three] == [0, 3, 0]
    newest = selectors.events_found(sees_all(three[0].workspace), selectors.EventsWanted(), limit=2)
    assert {event.kind for event in newest} == {"stream.purged"}


def test_who_purges_one_stream_comes_to_its_undo_and_is_offered_a_part_of_it(
    owner: Client, three: list[Stream]
) -> None:
    address = "/streams/_bulk/?do=purge&stream=c"
    page = owner.get(address)
    assert 'href="/streams/" autofocus>Cancel' in page.content.decode()
    assert 'href="/streams/c/purge/">Purge only part of it…' in page.content.decode()
    assert "Purge only part" not in owner.get(f"{address}&stream=a").content.decode()
    answer = owner.post(address, seen(page), follow=True)
    assert answer.redirect_chain == [("/streams/c/", 302)]
    assert "1 stream was purged of 2 messages." in answer.content.decode()
    assert "/streams/c/removals/1/undo/" in answer.content.decode()


@pytest.mark.parametrize("deed", ["purge", "delete"])
def test_a_production_stream_goes_only_for_its_name(owner: Client, three: list[Stream], deed: str) -> None:
    address = f"/streams/_bulk/?do={deed}&stream=a&stream=b"
    for typed in ("", "a", "B"):
        assert owner.post(address, {"seen": 4, "confirm": typed}).status_code == 422
    assert selectors.stream_view(three[1]).state.messages == 3
    assert owner.post(address, {"seen": 4, "confirm": "b"}).status_code == 302
    assert names(owner) == (["a", "b", "c"] if deed == "purge" else ["c"])


def test_several_production_streams_go_only_for_their_number(owner: Client, make_stream: MakeStream) -> None:
    for name in ("p1", "p2"):
        make_stream(name, labels={"env": "production"})
    address = "/streams/_bulk/?do=delete&stream=p1&stream=p2"
    assert owner.post(address, {"seen": 0, "confirm": "p1"}).status_code == 422
    assert owner.post(address, {"seen": 0, "confirm": "2 production streams"}).status_code == 302
    assert names(owner) == []


@pytest.mark.parametrize(("others", "phrase"), [([], "a"), (["c"], "2 streams")])
def test_what_goes_for_good_and_is_much_goes_only_for_what_was_typed(
    owner: Client, make_stream: MakeStream, others: list[str], phrase: str
) -> None:
    for name in ("a", *others):
        more(make_stream(name), 1000)
    address = "".join(["/streams/_bulk/?do=delete&stream=a", *(f"&stream={name}" for name in others)])
    shown = seen(owner.get(address))
    assert f"Type {phrase} to confirm" in owner.get(address).content.decode()
    assert owner.post(address, shown).status_code == 422
    assert owner.post(address, {**shown, "confirm": phrase}).status_code == 302
    assert "a" not in names(owner)


def test_what_can_be_undone_is_purged_by_one_button_however_much(
    owner: Client, make_stream: MakeStream, settings: Any
) -> None:
    more(make_stream("a"), 1000)
    address = "/streams/_bulk/?do=purge&stream=a"
    page = owner.get(address)
    assert ("confirm" in page.context["form"].fields, b"undo=true" in page.content) == (False, True)
    settings.ENV = dataclasses.replace(settings.ENV, undo_s=0)
    page = owner.get(address)
    assert ("confirm" in page.context["form"].fields, b"undo=true" in page.content) == (True, False)


def seen(page: Any) -> dict[str, str]:
    """What a page of a deed sends back of what it showed."""
    form = page.context["form"]
    return {name: form[name].value() for name in ("seen", "upto")}


def more(stream: Stream, count: int) -> None:
    store.log().run(append(stream.stream_id, [NewMessage(id=f"more-{n}", body=b"1") for n in range(count)]))


def test_a_purge_takes_what_was_seen_and_nothing_that_came_later(
    owner: Client, make_stream: MakeStream
) -> None:
    address = "/streams/_bulk/?do=purge&stream=a&stream=b"
    streams = [make_stream(name, bodies=[b"1", b"2"]) for name in "ab"]
    shown = seen(owner.get(address))
    more(streams[1], 8)
    assert owner.post(address, shown).status_code == 302
    states = [selectors.stream_view(stream).state for stream in streams]
    assert [(state.messages, state.first_offset) for state in states] == [(0, 3), (8, 3)]
    (event, _) = selectors.events_found(sees_all(streams[0].workspace), selectors.EventsWanted(), limit=2)
    told = event.after or {}
    assert (event.stream, told["messages"], told["asked"]) == ("b", 2, {"offset": "3"})


@pytest.mark.parametrize("deed", ["purge", "delete"])
def test_another_stream_under_a_name_is_not_taken_for_the_one_that_was_seen(
    owner: Client, make_stream: MakeStream, deed: str
) -> None:
    address = f"/streams/_bulk/?do={deed}&stream=a"
    old = make_stream("a", bodies=[b"1", b"2"])
    shown = seen(owner.get(address))
    stream_delete(old, actor=SYSTEM)
    new = make_stream("a", bodies=[b"3"])
    assert owner.post(address, shown).status_code == 409
    assert selectors.stream_view(new).state.messages == 1
    assert owner.post(address, seen(owner.get(address))).status_code == 302


@pytest.mark.parametrize("upto", ["", "{}"])
def test_a_purge_that_does_not_say_what_was_seen_is_asked_again_for_one_message_more(
    owner: Client, make_stream: MakeStream, upto: str
) -> None:
    stream = make_stream("a", bodies=[b"1"])
    more(stream, 1)
    answer = owner.post("/streams/_bulk/?do=purge&stream=a", {"seen": 1, "upto": upto})
    assert answer.status_code == 409
    assert "This removes 2 messages" in answer.content.decode()
    assert selectors.stream_view(stream).state.messages == 2


def test_what_was_brought_back_since_the_preview_is_asked_again(
    owner: Client, make_stream: MakeStream
) -> None:
    address = "/streams/_bulk/?do=purge&stream=a"
    stream = make_stream("a", bodies=[b"1", b"2"])
    owner.post(address, seen(owner.get(address)))
    shown = seen(owner.get(address))
    removal_undo(stream, 1, actor=Actor("ann"))
    more(stream, 3)
    again = owner.post(address, shown)
    assert again.status_code == 409
    assert owner.post(address, seen(again)).status_code == 302
    assert selectors.stream_view(stream).state.messages == 0


@pytest.mark.parametrize(("count", "status"), [(1, 302), (2, 409)])
def test_a_tenth_more_than_was_seen_is_asked_again_before_a_stream_is_deleted(
    owner: Client, make_stream: MakeStream, count: int, status: int
) -> None:
    address = "/streams/_bulk/?do=delete&stream=a"
    stream = make_stream("a", bodies=[b"1"] * 10)
    shown = seen(owner.get(address))
    more(stream, count)
    assert owner.post(address, shown).status_code == status
    assert Stream.objects.filter(name="a").exists() is (status == 409)


@pytest.mark.parametrize(
    "upto",
    [
        "[1]",
        "{",
        '{"a": -1}',
        '{"a": true}',
        '{"a": "x"}',
        f'{{"a": {10**30}}}',
        "7",
        "7" * 5_000,
        "[" * 100_000,
    ],
    ids=range(9),
)
def test_what_no_page_sends_as_seen_is_refused(owner: Client, make_stream: MakeStream, upto: str) -> None:
    stream = make_stream("a", bodies=[b"1"])
    assert owner.post("/streams/_bulk/?do=purge&stream=a", {"seen": 1, "upto": upto}).status_code == 422
    assert selectors.stream_view(stream).state.messages == 1


def test_one_that_refuses_does_not_keep_the_others(owner: Client, make_stream: MakeStream) -> None:
    kept = make_stream("a", bodies=[b"1"], deny_purge=True)
    gone = make_stream("b", bodies=[b"1"])
    page = owner.post("/streams/_bulk/?do=purge&stream=a&stream=b", {"seen": 2}, follow=True).content.decode()
    assert "a: Stream &#x27;a&#x27; has deny_purge set." in page
    assert "1 stream was purged of 1 message. They can be restored for 1 h on each" in page
    assert [selectors.stream_view(stream).state.messages for stream in (kept, gone)] == [1, 0]


def test_a_label_is_set_on_several_streams_and_taken_away(owner: Client, three: list[Stream]) -> None:
    address = "/streams/_bulk/?do=label&stream=a&stream=b"
    assert owner.post(address, {"label": "team", "value": "shop"}).status_code == 302
    assert names(owner, "label=team:shop") == ["a", "b"]
    assert owner.post(address, {"label": "team", "value": ""}).status_code == 302
    assert [Stream.objects.get(name=name).labels for name in "ab"] == [{"env": "test"}, {"env": "production"}]
    for label in ("", "a:b", "12"):
        assert owner.post(address, {"label": label, "value": "x"}).status_code == 422


def test_a_deed_without_streams_or_without_a_name_is_refused(owner: Client, three: list[Stream]) -> None:
    assert owner.get("/streams/_bulk/?do=burn&stream=a").status_code == 400
    assert "No stream was selected" in owner.get("/streams/_bulk/?do=purge", follow=True).content.decode()


def test_a_viewer_may_do_none_of_it(viewer: Client, three: list[Stream]) -> None:
    assert viewer.post("/streams/_bulk/?do=purge&stream=a", {"seen": 1}).status_code == 403
    page = viewer.get("/streams/").content.decode()
    for deed in ("label", "purge", "delete"):
        assert f'name="do" value="{deed}" disabled title="This needs the role operator."' in page
    assert "do=purge" not in page
    assert 'aria-disabled="true" title="This needs the role operator.">Purge…</a>' in page


def test_streams_of_another_workspace_are_not_touched(stranger: Client, three: list[Stream]) -> None:
    assert stranger.post("/streams/_bulk/?do=delete&stream=a", {"seen": 0}).status_code == 302
    assert Stream.objects.filter(name="a").exists()


def test_columns_tell_the_oldest_message_and_what_is_in_flight_and_dead_over_all_groups(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[b"1"])
    make_stream("alone")
    for name in ("billing", "mail"):
        make_group(stream, name)
        judged(stream, name, "slow", lag_ms=5_000, lag=3, pending=30, dead=2)
    viewer.post("/streams/_columns/", {"column": ["oldest", "pending", "dead"]})
    page = viewer.get("/streams/").content.decode()
    cells = re.findall(r'data-label="(In flight|Dead letters|Oldest message)">(.*?)</td>', page, re.DOTALL)
    said = [(label, strip_tags(cell).strip()) for label, cell in cells]
    assert said[:3] == [("Oldest message", "–"), ("In flight", ""), ("Dead letters", "")], (
        "no group, no message"
    )
    assert said[3][1].endswith(("now", "s ago"))
    assert said[4:] == [("In flight", "60"), ("Dead letters", "4")]


def test_the_totals_of_the_workspace_stand_above_the_list(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1", b"22"])
    make_stream("mail", bodies=[b"3"])
    page = viewer.get("/streams/?name=mail").content.decode()
    (strip,) = re.findall(r'<dl class="panel figures strip">.*?</dl>', page, re.DOTALL)
    assert 'data-live="overview" data-field="messages" data-format="count">3</span>' in strip
    assert ">4 B</span>" in strip


def test_a_name_breaks_at_dots_and_dashes_and_labels_take_one_line(
    viewer: Client, make_stream: MakeStream
) -> None:
    make_stream("sensors.floor-3.celsius", labels={"a": "1", "env": "production", "z": "<b>"})
    row = viewer.get("/streams/").content.decode().split("<tbody>")[1]
    assert '<a title="sensors.floor-3.celsius"' in row
    assert "data-row>sensors.<wbr>floor-<wbr>3.<wbr>celsius</a>" in row
    assert "env:production</bdi>" in row
    assert 'title="a:1 z:&lt;b&gt; ">+2</a>' in row


def test_a_phone_offers_the_columns_that_are_shown_to_sort_by(viewer: Client, three: list[Stream]) -> None:
    page = viewer.get("/streams/?sort=-created")
    sorts = dict(page.context["sorts"])
    assert sorts["-messages"] == "Messages ↓"
    assert sorts["name"] == "Name ↑"
    assert sorts["-created"] == "Created ↓", "what it is sorted by is there also where its column is not"
    assert "-dead" not in sorts
    assert '<option value="-created" selected>' in page.content.decode()


def test_the_lag_of_commits_is_told_of_streams_that_have_some(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[b"1"] * 5)
    viewer.cookies["okmq_columns"] = "lag"
    hidden = 'data-field="committed" data-format="differs" data-value="0" hidden>'
    page = viewer.get("/streams/").content.decode()
    assert "Commit lag" in page
    assert hidden in page
    store.log().run(commit(stream.stream_id, 2))
    assert hidden not in viewer.get("/streams/").content.decode()


def test_the_empty_list_has_its_call(viewer: Client) -> None:
    page = viewer.get("/streams/").content.decode()
    assert "No streams yet" in page
    assert "/api/v1/streams/?limit=50" in page
