"""A workspace's configuration as a file over the API: what commands do with it (``declared/``), for a token."""

from streams import store
from streams.log import stats
from streams.log.append import append
from streams.models import Event, Stream
from tests.streams.api.conftest import Api, caller, code
from tests.streams.log.messages import message

FILE = """\
okmq: 1
policies:
  week: {ttl: 604800}
streams:
  invoices: {policy: week}
  orders:
    max_messages: 1000
    groups: {billing: {ack_wait: 5}}
"""


def errors(answer: object) -> list[str]:
    assert code(answer) == "validation_error"
    found: list[str] = answer.json()["error"]["details"]["errors"]["file"]  # type: ignore[attr-defined]
    return found


def test_a_file_is_applied_by_the_token_and_is_what_is_then_written_out(owner: Api) -> None:
    answer = owner.post("configuration/apply", {"file": FILE})
    assert answer.status_code == 200
    told = answer.json()
    assert [(each["change"], each["what"]) for each in told["changes"]] == [
        ("made", "policy week"),
        ("made", "stream invoices"),
        ("made", "stream orders"),
        ("made", "group billing of orders"),
    ]
    assert (told["workspace"], told["messages"], told["complete"]) == (owner.workspace.name, 0, True)
    made = Event.objects.filter(workspace=owner.workspace, kind="stream.created")
    assert {event.actor for event in made} == {"token test"}
    written = owner.get("configuration").json()["file"]
    again = owner.post("configuration/apply", {"file": written, "prune": True}).json()
    assert (again["changes"], again["left"]) == ([], [])


def test_a_dry_run_says_what_goes_and_changes_nothing(owner: Api) -> None:
    owner.post("streams/", {"name": "orders"})
    owner.post("streams/", {"name": "old"})
    stream_id = Stream.objects.get(workspace=owner.workspace, name="orders").stream_id
    store.log().run(append(stream_id, [message(n) for n in range(10)]))
    before = Event.objects.count()
    wanted = {"file": "okmq: 1\nstreams:\n  orders: {max_messages: 4}\n", "dry_run": True}
    told = owner.post("configuration/apply", wanted).json()
    assert (told["messages"], told["left"]) == (6, ["stream old"])
    pruned = owner.post("configuration/apply", {**wanted, "prune": True}).json()
    assert [each["what"] for each in pruned["changes"]] == ["stream old", "stream orders"]
    assert pruned["left"] == []
    assert Event.objects.count() == before
    assert store.log().run(stats.inspect(stream_id)).messages == 10
    assert owner.get("streams/old").status_code == 200


def test_everything_that_is_wrong_is_named_with_its_place_and_nothing_is_made(owner: Api) -> None:
    answer = owner.post(
        "configuration/apply", {"file": "okmq: 1\nstreams:\n  good: {}\n  bad: {ttl: soon, colour: red}\n"}
    )
    assert answer.status_code == 400
    assert [each.split(": ")[0:2] for each in errors(answer)] == [
        ["4:9", "streams.bad.ttl"],
        ["4:20", "streams.bad.colour"],
    ]
    assert owner.get("streams/good").status_code == 404


def test_what_a_plan_refuses_is_named_with_its_place(owner: Api) -> None:
    owner.workspace.plan = "free"
    owner.workspace.save()
    (sentence,) = errors(
        owner.post("configuration/apply", {"file": "okmq: 1\nstreams:\n  orders: {ttl: 999999999}\n"})
    )
    assert sentence.startswith("3:12: streams.orders.ttl: ")


def test_a_file_of_another_workspace_is_not_applied_here(owner: Api, stranger: Api) -> None:
    stranger.post("streams/", {"name": "theirs"})
    owner.post("streams/", {"name": "ours"})
    theirs = stranger.get("configuration").json()["file"]
    (sentence,) = errors(owner.post("configuration/apply", {"file": theirs, "prune": True}))
    assert sentence.startswith("2:1: workspace: This is for another workspace")
    assert owner.get("streams/ours").status_code == 200


def test_a_token_of_some_streams_neither_sees_nor_applies_the_whole(owner: Api) -> None:
    narrowed = caller(owner.workspace, streams=["orders.*"])
    assert code(narrowed.get("configuration")) == "forbidden"
    assert code(narrowed.post("configuration/apply", {"file": FILE})) == "forbidden"
