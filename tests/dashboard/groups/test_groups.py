"""Consumer groups in the console: made, seen, sought with a preview, paused, deleted; their dead letters."""

import dataclasses
import re
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from dashboard.formats import UNKNOWN
from dashboard.groups.group_rows import skips_more
from streams import selectors, store
from streams.access import SYSTEM
from streams.log import groups
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Group, Stream
from streams.services.groups import group_create
from tests.dashboard.conftest import MakeStream, sampled_ago
from tests.dashboard.forms import sent_back
from tests.dashboard.verdicts import judged

BODIES = [str(number).encode() for number in range(1, 21)]
PAGE = "/streams/orders/groups/billing/"
LETTERS = f"{PAGE}dead-letters/"


def make_group(stream: Stream, name: str = "billing", **settings: Any) -> Group:
    return group_create(stream, name=name, settings=settings, actor=SYSTEM)[0]


def fetched(group: Group, *, limit: int) -> list[str]:
    """Fetch; the leases of what came."""
    found = store.log().run(groups.fetch(group.stream.stream_id, group.name, limit=limit, consumer="c-1"))
    return [delivery.lease for delivery in found.deliveries]


def bury(group: Group, *, count: int, why: str = "no such customer") -> None:
    """Make dead letters of the next messages."""
    leases = fetched(group, limit=count)
    store.log().run(groups.term(group.stream.stream_id, group.name, "leases", leases, reason=why))


def letters(group: Group) -> list[int]:
    return [letter.offset for letter in selectors.dead_letters(group)]


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    return make_group(make_stream("orders", bodies=BODIES))


@pytest.mark.parametrize(
    ("seen_from", "now_from", "to", "more"),
    [(5, 5, 9, False), (5, 3, 9, True), (5, 7, 9, False), (9, 12, 5, False), (9, 3, 5, True)],
)
def test_a_seek_that_would_skip_more_than_shown_is_noticed(
    seen_from: int, now_from: int, to: int, more: bool
) -> None:
    assert skips_more(seen_from=seen_from, now_from=now_from, to=to) is more


def test_without_groups_the_tab_says_how_to_make_one(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    page = owner.get("/streams/orders/groups/").content.decode()
    assert "No groups yet" in page
    assert "curl http://testserver/api/v1/streams/orders/groups/" in page


def test_the_tab_lists_how_each_group_stands(viewer: Client, billing: Group) -> None:
    fetched(billing, limit=3)
    page = viewer.get("/streams/orders/groups/").content.decode()
    (row,) = re.findall(r"<tbody>.*?</tbody>", page, re.DOTALL)
    cells = re.findall(r'data-label="(?:Lag|Pending|Members)">(.*?)</td>', row)
    assert [strip_tags(cell).strip() for cell in cells] == [
        "17",
        "3",
        "1 · 0 polling",
    ]
    assert "unknown" in row


def test_a_group_that_was_just_made_is_unknown_wherever_it_stands_and_says_why(
    owner: Client, billing: Group
) -> None:
    why = "Not enough samples yet to tell."
    view = selectors.group_view(billing)
    assert (view.health.status, view.health.reason) == ("unknown", why)
    for page in (PAGE, f"{PAGE}pending/", "/streams/orders/groups/", "/groups/", "/groups/?status=unknown"):
        text = owner.get(page).content.decode()
        (verdict,) = re.findall(r'<span class="verdict" title="([^"]*)".*?</span><span[^>]*>(\w+)<', text)
        assert verdict == (why, "unknown"), page
    assert "unknown · " in strip_tags(owner.get("/streams/").content.decode())
    assert [(status, count) for status, _, count in owner.get("/").context["statuses"]] == [("unknown", 1)]


def test_what_the_worker_saw_too_long_ago_is_unknown_wherever_the_group_stands(
    owner: Client, billing: Group
) -> None:
    judged(billing.stream, "billing", "stalled", ago_ms=31_000)
    why = "The worker has not sampled this group recently."
    assert why in owner.get(PAGE).content.decode()
    assert "billing" in owner.get("/groups/?status=unknown").content.decode()
    assert f"billing: {why}" in owner.get("/streams/").content.decode()


def test_while_nobody_samples_rates_are_unknown_and_then_also_how_a_group_at_rest_is_doing(
    owner: Client, billing: Group
) -> None:
    store.log().run(
        groups.ack(billing.stream.stream_id, "billing", "leases", fetched(billing, limit=len(BODIES)))
    )
    judged(billing.stream, "billing", "ok", lag=0, ago_ms=31_000, acked=(0, 20))
    pages = (PAGE, "/streams/orders/groups/", "/groups/", "/groups/?status=ok", "/groups/?status=unknown")

    def verdicts() -> list[list[str]]:
        texts = [owner.get(page).content.decode() for page in pages]
        return [
            re.findall(r'<span class="verdict" title="[^"]*".*?</span><span[^>]*>(\w+)<', each)
            for each in texts
        ]

    def rates() -> list[str]:
        return re.findall(r"(?:acks|· deliveries) (\S+)", strip_tags(owner.get(PAGE).content.decode()))

    assert rates() == ["2.00/s", "2.00/s"]
    assert verdicts() == [["ok"], ["ok"], ["ok"], ["ok"], []]
    sampled_ago(ms=10_000)
    assert rates() == ["–", "–"]
    assert verdicts() == [["ok"], ["ok"], ["ok"], ["ok"], []]
    sampled_ago(ms=31_000)
    assert verdicts() == [["unknown"], ["unknown"], ["unknown"], [], ["unknown"]]
    assert "billing: The worker has not sampled" in owner.get("/streams/").content.decode()


def test_htmx_gets_the_parts_that_move(viewer: Client, billing: Group) -> None:
    for page in ("/streams/orders/groups/", PAGE):
        part = viewer.get(page, headers={"HX-Request": "true"}).content
        assert b"<html" not in part
        assert b"20" in part


@pytest.mark.parametrize(
    ("chosen", "field", "value"),
    [
        ({}, "start_from", "earliest"),
        ({"start_from": "offset", "at": "7"}, "start_offset", 7),
        ({"max_deliver": ""}, "max_deliver", -1),
        ({"ack_wait": "0.5"}, "ack_wait", 0.5),
        ({"filter_keys": "a.>, b.*"}, "filter_keys", ["a.>", "b.*"]),
    ],
)
def test_a_group_is_made(
    owner: Client, make_stream: MakeStream, chosen: dict[str, str], field: str, value: object
) -> None:
    make_stream("orders", bodies=BODIES)
    form = {"name": "billing", "start_from": "earliest", "ack_wait": "30", "max_deliver": "5"} | chosen
    assert owner.post("/streams/orders/groups/", form)["Location"] == PAGE
    assert getattr(Group.objects.get(name="billing"), field) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "<b>"),
        ("name", ""),
        ("at", "7"),
        ("ack_wait", "0"),
        ("max_deliver", "0"),
        ("filter_keys", "a..b"),
        ("filter_keys", "a " * 101),
        ("start_from", "sideways"),
    ],
)
def test_what_makes_no_group_is_said_at_its_field(
    owner: Client, make_stream: MakeStream, field: str, value: str
) -> None:
    make_stream("orders")
    form = {"name": "billing", "start_from": "earliest", "ack_wait": "30", "max_deliver": "5", field: value}
    answer = owner.post("/streams/orders/groups/", form)
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert not Group.objects.exists()


def test_a_name_in_use_with_other_settings_is_said_at_the_name(owner: Client, billing: Group) -> None:
    form = {"name": "billing", "start_from": "latest", "ack_wait": "30", "max_deliver": "5"}
    assert "name" in owner.post("/streams/orders/groups/", form).context["form"].errors


@pytest.mark.parametrize(
    ("query", "before", "after", "messages"),
    [
        ("position=earliest", 11, 1, 10),
        ("position=latest", 11, 21, 10),
        ("position=offset&at=14", 11, 14, 3),
        ("position=timestamp&at=1 h ago", 11, 1, 10),
        ("position=offset&at=99999", 11, 21, 10),
    ],
)
def test_a_seek_does_what_its_preview_said(
    owner: Client, billing: Group, query: str, before: int, after: int, messages: int
) -> None:
    store.log().run(groups.ack(billing.stream.stream_id, "billing", "leases", fetched(billing, limit=10)))
    preview = owner.get(f"{PAGE}?{query}").context["preview"]
    assert (preview.before, preview.after, preview.messages) == (before, after, messages)
    assert selectors.group_view(billing).state.delivered_offset == before - 1
    owner.post(f"{PAGE}seek/", {"next_offset": after, "seen_from": before})
    assert selectors.group_view(billing).state.delivered_offset == after - 1
    assert selectors.group_view(billing).state.lag == 21 - after


def test_a_preview_moves_nothing_even_what_is_in_flight(owner: Client, billing: Group) -> None:
    fetched(billing, limit=4)
    assert "4 messages in flight" in owner.get(f"{PAGE}?position=earliest").content.decode()
    assert selectors.group_view(billing).state.ack_pending == 4


def test_a_seek_that_would_skip_more_by_now_asks_again(owner: Client, billing: Group) -> None:
    answer = owner.post(f"{PAGE}seek/", {"next_offset": 15, "seen_from": 11})
    assert answer["Location"] == f"{PAGE}?position=offset&at=15"
    assert selectors.group_view(billing).state.delivered_offset == 0


@pytest.mark.parametrize("query", ["position=offset", "position=offset&at=x", "position=timestamp&at=soon"])
def test_a_place_that_cannot_be_read_is_said_in_the_form(owner: Client, billing: Group, query: str) -> None:
    assert owner.get(f"{PAGE}?{query}").status_code == 422


def test_a_seek_without_a_preview_moves_nothing(owner: Client, billing: Group) -> None:
    owner.post(f"{PAGE}seek/", {"next_offset": "15"})
    assert selectors.group_view(billing).state.delivered_offset == 0


def test_pause_and_resume(owner: Client, billing: Group) -> None:
    owner.post(f"{PAGE}pause/", {"until": ""})
    assert fetched(billing, limit=1) == []
    page = owner.get(PAGE).content.decode()
    assert "Paused until resumed by hand; 20 messages waiting." in page
    assert "20 messages" not in page.split("<h2>Paused</h2>")[1], "nothing moves the numbers of that panel"
    judged(billing.stream, "billing", "paused")
    owner.post(f"{PAGE}resume/")
    assert b"Not sampled since it was resumed." in owner.get(PAGE).content
    assert len(fetched(billing, limit=1)) == 1


def test_a_pause_has_an_end(owner: Client, billing: Group) -> None:
    owner.post(f"{PAGE}pause/", {"until": "30 min"})
    view = selectors.group_view(billing)
    assert view.paused_until is not None
    end = view.paused_until.strftime("%Y-%m-%d %H:%M:%S UTC")
    assert f"Paused until {end}; 20 messages waiting." in owner.get(PAGE).content.decode()
    assert 1_700_000 < view.paused_until.timestamp() * 1000 - view.state.now_ms <= 1_800_000


@pytest.mark.parametrize("until", ["soon", "1 h ago", "2001-01-01", "9999999 w"])
def test_a_pause_that_has_no_end_ahead_is_refused(owner: Client, billing: Group, until: str) -> None:
    assert owner.post(f"{PAGE}pause/", {"until": until}).status_code == 422
    assert selectors.group_view(billing).status != "paused"


def test_a_group_goes_only_when_its_name_is_typed(owner: Client, billing: Group) -> None:
    assert owner.post(f"{PAGE}delete/", {"confirm": "Billing"}).status_code == 422
    assert owner.post(f"{PAGE}delete/", {"confirm": "billing"})["Location"] == "/streams/orders/groups/"
    assert owner.get(PAGE).status_code == 404


def focused(page: Any) -> list[str]:
    """What has the focus when a page is opened."""
    return re.findall(r"<[^>]* autofocus[^>]*>([^<]*)<", page.content.decode())


def test_the_question_before_a_group_goes_has_a_way_out_which_has_the_focus(
    owner: Client, billing: Group
) -> None:
    page = owner.get(f"{PAGE}settings/")
    assert focused(page) == []
    (address,) = re.findall(
        r'<a class="btn btn-danger" href="([^"]*)">.*Delete group…</a>', page.content.decode()
    )
    question = owner.get(f"{PAGE}settings/{address}")
    wrong = owner.post(f"{PAGE}delete/", {"confirm": "Billing"})
    more = owner.post(f"{PAGE}delete/", {"confirm": "billing", "seen_letters": 0})
    assert [focused(question), focused(wrong)] == [["Cancel"]] * 2
    for shown in (question, wrong):
        assert f'<a class="btn btn-outline-secondary" href="{PAGE}settings/"' in shown.content.decode()
    assert more.status_code == 302


@pytest.mark.parametrize("retention", ["limits", "interest"])
def test_a_group_of_which_more_would_go_is_deleted_only_once_that_was_seen(
    owner: Client, make_stream: MakeStream, retention: str
) -> None:
    stream = make_stream("orders", retention=retention)
    billing, other = make_group(stream), make_group(stream, name="other")
    form = owner.get(f"{PAGE}settings/").context["delete_form"]
    told = {name: form[name].value() for name in ("seen_letters", "seen_messages")}
    assert told == {"seen_letters": 0, "seen_messages": 0}
    store.log().run(append(stream.stream_id, [NewMessage(id=body.decode(), body=body) for body in BODIES]))
    if retention == "limits":
        bury(billing, count=3)
    else:
        fetched(other, limit=20)
        store.log().run(groups.ack(stream.stream_id, "other", "up_to", [20]))
    answer = owner.post(f"{PAGE}delete/", {"confirm": "billing", **told})
    assert answer.status_code == 409
    assert "Nothing was deleted" in answer.content.decode()
    form = answer.context["delete_form"]
    told = {name: form[name].value() for name in ("seen_letters", "seen_messages")}
    gone, going = (3, 0) if retention == "limits" else (0, 20)
    assert told == {"seen_letters": gone, "seen_messages": going}
    assert owner.post(f"{PAGE}delete/", {"confirm": "billing", **told}).status_code == 302


def test_what_goes_with_a_group_follows_it(owner: Client, billing: Group) -> None:
    sentence = owner.get(f"{PAGE}settings/").content.decode().split("This deletes")[1].partition("</p>")[0]
    for field in ("ack_pending", "dead_letters"):
        assert f'data-live="group:orders/billing" data-field="{field}"' in sentence


def test_a_dead_letter_is_replayed(owner: Client, billing: Group) -> None:
    bury(billing, count=3)
    owner.post(f"{LETTERS}replay/", {"offset": "2"})
    assert letters(billing) == [1, 3]
    assert len(fetched(billing, limit=1)) == 1


def test_a_dead_letter_is_deleted_after_a_preview(owner: Client, billing: Group) -> None:
    bury(billing, count=3)
    part = owner.get(f"{LETTERS}2/", headers={"HX-Request": "true"}).content.decode()
    form = dict(re.findall(r'name="(do|scope|offset)" value="(\w+)"', part))
    page = owner.post(f"{LETTERS}bulk/", form)
    assert "1 dead letter, of offset 2." in page.content.decode()
    assert letters(billing) == [1, 2, 3]
    owner.post(f"{LETTERS}bulk/", form | sent_back(page))
    assert letters(billing) == [1, 3]


@pytest.mark.parametrize(
    ("offset", "status"), [("", 400), ("x", 400), ("all", 400), ("-1", 400), ("0", 400), ("9", 404)]
)
def test_a_dead_letter_that_is_not_named_is_not_all_of_them(
    owner: Client, billing: Group, offset: str, status: int
) -> None:
    bury(billing, count=2)
    assert owner.post(f"{LETTERS}replay/", {"offset": offset}).status_code == status
    assert letters(billing) == [1, 2]


def test_dead_letters_are_paged(owner: Client, make_stream: MakeStream) -> None:
    billing = make_group(make_stream("orders", bodies=[b"1"] * 60))
    bury(billing, count=60)
    first = owner.get(LETTERS)
    assert first.context["letters_after"] == 50
    second = owner.get(f"{LETTERS}?after=50")
    assert [shown.letter.offset for shown in second.context["letters"]] == list(range(51, 61))


def test_a_dead_letter_opens_with_every_digit(viewer: Client, make_stream: MakeStream) -> None:
    billing = make_group(make_stream("orders", bodies=[b'{"id":9007199254740993}']))
    bury(billing, count=1)
    part = viewer.get(f"{LETTERS}1/", headers={"HX-Request": "true"}).content
    assert b'<span class="json-number">9007199254740993</span>' in part
    assert b"<html" not in part
    assert b"no such customer" in viewer.get(f"{LETTERS}1/").content
    assert viewer.get(f"{LETTERS}1/raw/").content == b'{"id":9007199254740993}'
    for offset in ("2", "99999999999999999999"):
        assert viewer.get(f"{LETTERS}{offset}/").status_code == 404


def test_hostile_bodies_reasons_and_consumers_are_text(owner: Client, make_stream: MakeStream) -> None:
    billing = make_group(make_stream("orders", bodies=[b'"<img src=x onerror=alert(1)>"'] * 3))
    bury(billing, count=1, why="<script>alert(1)</script>\u202e")
    store.log().run(
        groups.fetch(billing.stream.stream_id, "billing", limit=1, consumer="<img src=x onerror=alert(2)>")
    )
    for page in (PAGE, f"{PAGE}?position=latest", f"{PAGE}?position=earliest", LETTERS, f"{LETTERS}1/"):
        content = owner.get(page).content.decode()
        assert "<img src=x" not in content
        assert "<script>alert" not in content
        assert "\u202e" not in content
    assert owner.get(f"{LETTERS}1/raw/")["Content-Type"] == "text/plain; charset=utf-8"


POSTS = ("seek/", "pause/", "resume/", "delete/", "dead-letters/replay/", "dead-letters/bulk/")
FORM = {"next_offset": 15, "seen_from": 1, "until": "", "confirm": "billing", "offset": "1"}


def test_a_viewer_sees_everything_and_changes_nothing(viewer: Client, billing: Group) -> None:
    bury(billing, count=1)
    before = selectors.group_view(billing).state
    for page in (
        "/streams/orders/groups/",
        f"{PAGE}settings/",
        f"{PAGE}?position=earliest",
        f"{LETTERS}1/",
    ):
        content = viewer.get(page).content.decode()
        assert "This needs the right to manage." in content
        buttons = re.findall(r"<button[^>]*>", content.partition("<main")[2])
        changing = [button for button in buttons if "btn-primary" in button or "btn-danger" in button]
        assert changing
        assert all("disabled" in button for button in changing)
    for path in POSTS:
        assert viewer.post(f"{PAGE}{path}", FORM).status_code == 403
    assert viewer.post("/streams/orders/groups/", {"name": "mine"}).status_code == 403
    after = selectors.group_view(billing).state
    assert dataclasses.replace(after, now_ms=before.now_ms, steady_ms=before.steady_ms) == before


def test_a_stranger_finds_nothing(stranger: Client, billing: Group) -> None:
    bury(billing, count=1)
    for page in ("/streams/orders/groups/", PAGE, LETTERS, f"{LETTERS}1/", f"{LETTERS}1/raw/"):
        assert stranger.get(page).status_code == 404
    for path in POSTS:
        assert stranger.post(f"{PAGE}{path}", FORM).status_code == 404
    assert letters(billing) == [1]


def test_nobody_is_asked_to_log_in(nobody: Client, billing: Group) -> None:
    for page in ("/streams/orders/groups/", PAGE, LETTERS, f"{LETTERS}1/"):
        assert nobody.get(page)["Location"].startswith("/login/?next=")
    for path in POSTS:
        assert nobody.post(f"{PAGE}{path}", FORM)["Location"].startswith("/login/?next=")
    assert Group.objects.filter(name="billing").exists()


def test_what_changes_is_never_a_link(owner: Client, billing: Group) -> None:
    for path in POSTS[:-1]:
        assert owner.get(f"{PAGE}{path}").status_code == 405


@pytest.mark.parametrize("do", ["replay", "delete"])
def test_a_link_to_a_preview_of_dead_letters_does_nothing(owner: Client, billing: Group, do: str) -> None:
    """Whatever it says was seen and agreed to."""
    bury(billing, count=2)
    asked = {"do": do, "scope": "all", "seen_offsets": "1-2", "confirm": "orders"}
    page = owner.get(f"{LETTERS}bulk/", asked)
    assert "2 dead letters, of offsets 1 to 2." in page.content.decode()
    assert letters(billing) == [1, 2]


@pytest.mark.parametrize(
    "query",
    [
        "position=timestamp&at=0001-01-01",
        "position=timestamp&at=9999-12-31T23:59:59-14:00",
        "position=timestamp&at=999999999 w ago",
        "position=offset&at=9223372036854775807",
        "position=offset&at=9223372036854775808",
        "position=last",
        "position=",
        "position=%00&at=%00",
    ],
)
def test_no_query_breaks_the_page(owner: Client, billing: Group, query: str) -> None:
    assert owner.get(f"{PAGE}?{query}").status_code in {200, 422}


@pytest.mark.parametrize(
    "query",
    [
        "after=99999999999999999999",
        "after=9223372036854775806",
        "after=9223372036854775807",
        "after=%00",
        "reason=%00",
    ],
)
def test_no_query_breaks_the_list_of_dead_letters(owner: Client, billing: Group, query: str) -> None:
    bury(billing, count=1)
    assert owner.get(f"{LETTERS}?{query}").status_code == 200


@pytest.mark.parametrize("name", ["%00", "%3Cb%3E", "Billing", "x" * 200, "%F0%9F%98%80"])
def test_a_group_that_is_not_there_is_404(owner: Client, billing: Group, name: str) -> None:
    assert owner.get(f"/streams/orders/groups/{name}/").status_code == 404


def cells_of_members(page: str) -> list[list[str]]:
    """What the table of members says, by row."""
    (table,) = re.findall(r"<caption[^>]*>Consumers with messages.*?</table>", page, re.DOTALL)
    rows = re.findall(r"<tr><td>.*?</tr>", table, re.DOTALL)
    return [[strip_tags(cell).strip() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)] for row in rows]


def test_members_are_told_with_their_state_and_what_they_have_out_more_than_once(
    owner: Client, billing: Group
) -> None:
    log, stream_id = store.log(), billing.stream.stream_id
    fetched(billing, limit=4)
    log.run(groups.nack(stream_id, "billing", "offsets", [1, 2]))
    log.run(groups.fetch(stream_id, "billing", limit=2, consumer="c-2"))
    log.run(groups.fetch(stream_id, "billing", limit=1, consumer="c-3"))
    log.run(groups.ack(stream_id, "billing", "offsets", [5]))
    page = owner.get(PAGE).content.decode()
    rows = cells_of_members(page)
    assert [row[:4] for row in rows] == [
        ["c-1", "active", "2", "0"],
        ["c-2", "active", "2", "2"],
        ["c-3", "idle", "0", "0"],
    ]
    *unknown, rate = (row.pop(4) for row in rows)
    assert unknown == [UNKNOWN, UNKNOWN], "who acknowledged none has no rate, not one of 0"
    assert 0 < float(rate.removesuffix("/s")) <= 0.1
    assert "?consumer=c-2&amp;deliveries=2" in page
    part = owner.get(PAGE, headers={"HX-Request": "true"}).content.decode()
    # The last one is how long ago they were active, and goes on.
    assert [[*row[:4], *row[5:-1]] for row in cells_of_members(part)] == [row[:-1] for row in rows]
