"""Filters under a name: shared with the workspace over the API, bounded, and nobody else's."""

from urllib.parse import urlencode

import pytest

from streams.models import Event, SavedFilter
from streams.services import saved_filters
from tests.streams.api.conftest import Api, caller, code, fields

REFUSED = {"page": "messages", "name": "refused", "query": "key=orders.*&match=.status+%3D+refused"}


def test_filters_are_kept_listed_replaced_and_let_go(owner: Api) -> None:
    made = owner.post("filters/", REFUSED)
    assert made.status_code == 201
    assert made.json() == {
        **REFUSED,
        "id": made.json()["id"],
        "query": "key=orders.%2A&match=.status+%3D+refused",
        "shared": True,
        "saved_by": "token test",
        "updated_at": made.json()["updated_at"],
    }
    owner.post("filters/", {"page": "streams", "name": "eu", "query": "name=eu"})
    assert [each["name"] for each in owner.get("filters/").json()] == ["eu", "refused"]
    assert [each["name"] for each in owner.get("filters/?page=streams").json()] == ["eu"]
    again = owner.post("filters/", {**REFUSED, "query": "match=refused"})
    assert (again.status_code, again.json()["id"]) == (200, made.json()["id"])
    assert owner.get("filters/?page=messages").json()[0]["query"] == "match=refused"
    assert owner.delete(f"filters/{made.json()['id']}").status_code == 204
    assert code(owner.delete(f"filters/{made.json()['id']}")) == "filter_not_found"
    kinds = Event.objects.filter(kind__startswith="filter.").order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["filter.saved", "filter.saved", "filter.saved", "filter.deleted"]


def test_what_is_no_filter_of_the_page_is_left_out(owner: Api) -> None:
    kept = {"page": "groups", "name": "bad", "query": "?sort=-lag&page=3&status=losing&next=//evil&group="}
    assert owner.post("filters/", kept).json()["query"] == "status=losing&sort=-lag"


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"page": "tokens"}, "page"),
        ({"name": " "}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"name": "line\nbreak"}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"query": "page=3"}, "query"),
        ({"query": "match=" + "é" * 400}, "query"),
        ({"query": "&".join(["key=a"] * 101)}, "query"),
        ({"shared": False}, "shared"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_field(
    owner: Api, wanted: dict[str, object], field: str
) -> None:
    refused = owner.post("filters/", {**REFUSED, **wanted})
    assert code(refused) == "validation_error"
    assert fields(refused) == [field]
    assert owner.get("filters/").json() == []


@pytest.mark.parametrize(
    "conditions",
    [
        {"match": "(.status = new || .status = late) && .total > 99.5"},
        {"header": "trace = 4bf9 || region = eu && trace !~ 5"},
        {"match": "f(x)", "header": '"two words" = "a || b" || trace'},
        {"match": "x" * 500},
        {"match": " ", "key": "orders.*"},
    ],
    ids=["grouped", "ungrouped", "text", "longest", "blank"],
)
def test_conditions_are_kept_as_they_were_written(owner: Api, conditions: dict[str, str]) -> None:
    query = urlencode(sorted(conditions.items(), key=lambda each: ("key", "header", "match").index(each[0])))
    kept = owner.post("filters/", {**REFUSED, "query": query})
    assert (kept.status_code, kept.json()["query"]) == (201, query)


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        ({"match": ".status = new ||"}, "Enter a condition on both sides of ||; text that contains ||"),
        ({"match": ".status = new && && .n"}, "Enter a condition on both sides of &&; text that contains &&"),
        ({"match": ".status = new or late"}, "“or” is no operator: alternatives are joined by ||"),
        ({"match": "(.a || .b"}, "A ( is not closed; text that contains a parenthesis is written in quotes"),
        ({"match": "f(x) || .b"}, "Join conditions and parentheses by && or ||"),
        ({"match": "a || .n >> 5"}, "“>>” is no comparison; use one of = != < <= > >= ~ !~."),
        ({"match": "||".join(["a"] * 51)}, "A filter with || has at most 50 conditions."),
        ({"match": "(" * 9 + "a||b" + ")" * 9}, "Parentheses may be nested at most 8 deep."),
        ({"match": "x" * 501}, "A filter has at most 500 characters."),
        ({"header": "trace || two words"}, "Enter the name of a header, or a name and a value"),
        ({"header": "trace)||x", "match": "a"}, "A ) closes no ("),
        ({"header": "trace", "match": "a || ()"}, "Enter a condition between ( and )"),
    ],
)
def test_conditions_that_cannot_be_read_are_refused_and_nothing_is_kept(
    owner: Api, conditions: dict[str, str], says: str
) -> None:
    before = owner.post("filters/", REFUSED).json()
    refused = owner.post("filters/", {**REFUSED, "query": urlencode(conditions)})
    assert (refused.status_code, code(refused), fields(refused)) == (400, "validation_error", ["query"])
    assert refused.json()["error"]["message"].startswith(says)
    assert owner.get("filters/").json() == [before]
    assert Event.objects.filter(workspace=owner.workspace, kind="filter.saved").count() == 1


def test_only_what_the_page_reads_as_conditions_is_held_to_them(owner: Api) -> None:
    other = {"page": "streams", "name": "odd", "query": urlencode({"name": "a || (b"})}
    assert owner.post("filters/", other).status_code == 201


def test_what_was_kept_before_it_was_read_stays_as_it_is(owner: Api) -> None:
    SavedFilter.objects.create(
        workspace=owner.workspace, page="messages", name="old", query="match=%7C%7C", saved_by="somebody"
    )
    (kept,) = owner.get("filters/").json()
    assert kept["query"] == "match=%7C%7C"
    assert owner.delete(f"filters/{kept['id']}").status_code == 204


def test_there_are_so_many_filters_of_a_page_and_no_more(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_filters, "MOST_FILTERS", 2)
    for name in ("a", "b"):
        assert owner.post("filters/", {**REFUSED, "name": name}).status_code == 201
    assert code(owner.post("filters/", {**REFUSED, "name": "c"})) == "quota_exceeded"
    assert owner.post("filters/", {**REFUSED, "name": "a", "query": "key=b"}).status_code == 200
    assert owner.post("filters/", {"page": "streams", "name": "c", "query": "name=c"}).status_code == 201


def test_filters_are_the_workspaces(owner: Api, stranger: Api) -> None:
    kept = owner.post("filters/", REFUSED).json()
    assert stranger.get("filters/").json() == []
    assert code(stranger.delete(f"filters/{kept['id']}")) == "filter_not_found"
    for odd in ("0", "x", "9" * 30, "-1"):
        assert code(owner.delete(f"filters/{odd}")) == "filter_not_found"


def test_who_only_reads_or_sees_some_streams_shares_nothing(owner: Api) -> None:
    kept = owner.post("filters/", REFUSED).json()
    reader = caller(owner.workspace, scopes=["read"])
    assert [each["name"] for each in reader.get("filters/").json()] == ["refused"]
    assert code(reader.post("filters/", REFUSED)) == "forbidden"
    assert code(reader.delete(f"filters/{kept['id']}")) == "forbidden"
    narrowed = caller(owner.workspace, streams=["shop-*"])
    assert code(narrowed.get("filters/")) == "forbidden"
    assert code(narrowed.delete(f"filters/{kept['id']}")) == "forbidden"
