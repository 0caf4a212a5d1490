"""Several conditions in one filter: all must hold, quotes make text of anything, and what is no operator is refused."""

import base64
import json

import pytest
from django.test import Client

from dashboard.browse.coded import reading
from dashboard.browse.conditions import conditions
from dashboard.browse.filters import body_test, header_test
from tests.dashboard.conftest import MakeStream
from tests.dashboard.test_exports import content

PARTS = {"HX-Request": "true"}
BODY = (
    b'{"status": "paid", "n": 7, "note": "salt && pepper", "said": "this or that || \\"none\\"", "state": "OR",'
    b' "items": [{"sku": "A-1"}, {"sku": "B-2"}]}'
)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (".status = paid && .n > 5", True),
        (".status = paid && .n > 7", False),
        (".status = refused && .n > 5", False),
        (".status=paid&&.n=7&&pepper", True),
        ("paid && .n", True),
        ("paid && refused", False),
        ('.note = "salt && pepper"', True),
        ('.note ~ "t && p" && .n = 7', True),
        ('"salt && pepper"', True),
        ('"salt  && pepper"', False),
        ('"note": "salt && pepper"', True),
        ('"this or that || "', True),
        ('"\\"none\\""', True),
        ('.said ~ "this or that"', True),
        (".state = OR", True),
        (".status !~ refused", True),
        (".status !~ ai", False),
        (".missing !~ x", False),
        (".items[*].sku ~ A-", True),
        (".items[*].sku !~ A-", False),
        (".items[*].sku !~ C-", True),
        (".n !~ 7", False),
        ("!~ refused", True),
        ("!~ paid", False),
        ('!~ "salt && pepper"', False),
        (".status = paid && !~ test", True),
        (".status = paid && !~ pepper", False),
    ],
)
def test_all_conditions_of_a_filter_must_hold(text: str, passes: bool) -> None:
    assert body_test(text)(BODY) is passes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (".status = paid || .status = refused", "“||” is no operator"),
        (".status = paid||refused", "“||” is no operator"),
        (".status = paid or refused", "“or” is no operator"),
        ('.status = "paid" or "refused"', "“or” is no operator"),
        ("paid OR refused", "“OR” is no operator"),
        (".a or .b", "“or” is no operator"),
        (".status = paid and .n > 5", "“and” is no operator: conditions are joined by &&"),
        (".n > 5 AND .n < 9", "“AND” is no operator"),
        (".status = paid &&", "Enter a condition on both sides of &&"),
        ("&& .n", "Enter a condition on both sides of &&"),
        ("a && && b", "Enter a condition on both sides of &&"),
        ('.note = "salt && pepper', "A quote is not closed"),
        ('.status = paid && .note = "salt', "A quote is not closed"),
        (".n > 5 && .n >> 9", "“>>” is no comparison"),
        (".n !~", "Enter a path and a value"),
        ("!~", "Enter the text that shall not be in the body"),
        ('""', "Enter some text in the quotes"),
        ('"\\x" && a', "is not a quoted string"),
    ],
)
def test_what_would_be_taken_for_text_and_find_nothing_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"\.$") as refused:
        body_test(text)
    assert says in str(refused.value)


@pytest.mark.parametrize("text", ["rock & roll", "a|b", '5" pipe', "order", "for and", "orchid", "|", "&"])
def test_other_signs_and_words_are_text(text: str) -> None:
    assert conditions(text) == [text]


def test_what_is_not_in_a_body_is_neither_in_what_was_sent_nor_in_what_it_is_decoded_to() -> None:
    body = json.dumps(base64.b64encode(b'{"status": "refused", "n": 7}').decode()).encode()
    sent = body[1:20].decode()
    for text, passes in (
        ("!~ refused", False),
        (f"!~ {sent}", False),
        ("!~ paid", True),
        (".status !~ paid", True),
        (".status !~ refused", False),
        (f".n = 7 && {sent} && refused", True),
    ):
        assert body_test(text)(body, reading("auto")) is passes, text
    assert body_test("!~ refused")(body, reading("raw"))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("trace = 4bf9 && region", True),
        ("trace = 4bf9 && region = us", False),
        ("trace !~ 4b", False),
        ("trace !~ xx", True),
        ("other !~ xx", False),
        ('"two words" = "a && b" && trace', True),
    ],
)
def test_headers_are_filtered_in_the_same_way(text: str, passes: bool) -> None:
    assert header_test(text)(b'{"trace":"4bf9","region":"eu","two words":"a && b"}') is passes


@pytest.mark.parametrize("text", ["trace || region", "trace = a or b", "trace and region", "trace &&"])
def test_what_is_no_operator_is_refused_of_headers_too(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no operator|on both sides of &&"):
        header_test(text)


def test_pages_tails_exports_and_saved_filters_go_by_all_conditions(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream(
        "orders", bodies=[b'{"status": "%s", "n": %d}' % (s, n) for n in (1, 9) for s in (b"paid", b"new")]
    )
    query = {"match": ".status = paid && .n > 5"}
    page = owner.get("/streams/orders/", query)
    assert [row.message.offset for row in page.context["window"].rows] == [3]
    part = owner.get("/streams/orders/tail/", {**query, "after": "0"}, headers=PARTS)
    assert [row.message.offset for row in part.context["rows"]] == [3]
    lines = content(owner.get("/streams/orders/export/", query)).splitlines()
    assert [json.loads(line)["offset"] for line in lines] == [3]
    saved = {"page": "messages", "name": "large", "query": "match=.status+%3D+paid+%26%26+.n+%3E+5"}
    owner.post("/filters/save/", {**saved, "next": "/streams/orders/"})
    assert "match=.status+%3D+paid+%26%26+.n+%3E+5" in owner.get("/streams/orders/").content.decode()


@pytest.mark.parametrize("match", [".status = paid or refused", "paid || new", ".n > 5 &&"])
def test_what_is_refused_is_said_at_the_field_on_every_page(
    owner: Client, make_stream: MakeStream, match: str
) -> None:
    make_stream("orders", bodies=[b"1"])
    for page in ("", "tail/"):
        answer = owner.get(f"/streams/orders/{page}", {"match": match})
        assert answer.status_code == 422
        assert answer.context["form"].errors["match"]
    assert owner.get("/streams/orders/export/", {"match": match}).status_code == 400
