"""Erasures over HTTP: who may ask, what is refused, what is told of it. Spark is not here."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from streams import store
from streams.access import SYSTEM
from streams.log import groups, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.log.groups import group_remove
from streams.models import Erasure, Event, Stream, Workspace
from streams.services import erasures as service
from streams.services.workspaces import workspace_create, workspace_delete
from tests.streams.api.conftest import Api, caller, code, fields

PATH = "analytics/erasures"


@pytest.fixture(autouse=True)
def no_erasures(database: None) -> None:
    Erasure.objects.all().delete()


@pytest.fixture
def owner(owner: Api) -> Api:
    for name in ("a", "b"):
        assert owner.post("streams", {"name": name}).status_code == 201
    return owner


def test_a_key_is_known_only_until_it_is_erased(owner: Api) -> None:
    answer = owner.post(PATH, {"stream": "a", "key": "customers.8817"})
    shown = answer.json()
    digest = hashlib.sha256(b"customers.8817").hexdigest()
    assert (answer.status_code, answer.headers["Location"]) == (202, shown["url"])
    assert (shown["state"], shown["offset"], shown["key_sha256"], shown["messages"]) == (
        "queued",
        None,
        digest,
        None,
    )
    (taken,) = service.erasures_take()
    assert taken.key == "customers.8817"
    assert service.erasures_take() == []
    service.erasure_done(taken, messages=3, through=900)
    done = owner.get(f"{PATH}/{shown['id']}").json()
    assert (done["state"], done["messages"], done["through"], done["error"]) == ("succeeded", 3, 900, None)
    assert owner.get(PATH).json() == [done]
    events = Event.objects.filter(workspace=owner.workspace.name, kind__startswith="history.erasure_")
    assert [event.kind for event in events.order_by("id")] == [
        "history.erasure_requested",
        "history.erasure_done",
    ]
    assert Erasure.objects.get().key == ""
    assert not [event for event in events if "8817" in f"{event.summary}{event.before}{event.after}"]


def test_dead_letters_of_it_go_from_every_group_also_those_that_were_replayed(owner: Api) -> None:
    keys = ["person.1", "person.3", "person.3", "person.3"]
    stream_id = Stream.objects.get(workspace=owner.workspace, name="a").stream_id
    published = [NewMessage(id=f"m{n}", key=key, body=b"1") for n, key in enumerate(keys, start=1)]
    store.log().run(append(stream_id, published))
    for name in ("g", "h"):
        assert owner.post("streams/a/groups", {"name": name}).status_code == 201
        store.log().run(groups.fetch(stream_id, name, limit=10))
        store.log().run(groups.term(stream_id, name, "offsets", [1, 2, 3], reason="bad"))
    assert owner.post("streams/a/groups/h/dead-letters/replay", {"offsets": [3]}).json() == {"count": 1}
    store.log().run(trim.delete(stream_id, [2, 3, 4]))
    shown = owner.post(PATH, {"stream": "a", "key": "person.3"}).json()
    assert shown["dead_letters"] is None
    (taken,) = service.erasures_take()
    service.erasure_of_letters(taken)
    service.erasure_done(taken, messages=0, through=4)
    assert owner.get(f"{PATH}/{shown['id']}").json()["dead_letters"] == 4
    for name in ("g", "h"):
        left = owner.get(f"streams/a/groups/{name}/dead-letters").json()
        assert [letter["offset"] for letter in left] == [1]
        assert not store.log().run(groups.fetch(stream_id, name, limit=10)).deliveries
    events = Event.objects.filter(workspace=owner.workspace.name)
    deleted = events.filter(kind="group.dead_letters_deleted").order_by("id")
    assert [(each.group, each.before) for each in deleted] == [
        (name, {"erasure": shown["id"], "count": 2}) for name in ("g", "h")
    ]
    done = events.get(kind="history.erasure_done")
    assert done.after
    assert done.after["dead_letters"] == 4
    for event in events:
        assert "person" not in f"{event.summary}{event.before}{event.after}"


def test_what_is_published_after_it_was_asked_for_is_not_meant(owner: Api) -> None:
    stream_id = Stream.objects.get(workspace=owner.workspace, name="a").stream_id
    owner.post("streams/a/groups", {"name": "g"})

    def die(*offsets: int) -> None:
        batch = [NewMessage(id=f"m{offset}", key="k", body=b"1") for offset in offsets]
        store.log().run(append(stream_id, batch))
        store.log().run(groups.fetch(stream_id, "g", limit=10))
        store.log().run(groups.term(stream_id, "g", "offsets", list(offsets), reason="bad"))

    die(1, 2, 3)
    less = owner.post(PATH, {"stream": "a", "key": "k", "up_to": 1}).json()
    all_now = owner.post(PATH, {"stream": "a", "key": "k"}).json()
    beyond = owner.post(PATH, {"stream": "a", "key": "k", "up_to": 99}).json()
    assert [each["up_to"] for each in (less, all_now, beyond)] == [1, 3, 3]
    die(4)
    for erasure, letters in zip(service.erasures_take(), (1, 2, 0), strict=True):
        service.erasure_of_letters(erasure)
        assert erasure.dead_letters == letters
    assert [letter["offset"] for letter in owner.get("streams/a/groups/g/dead-letters").json()] == [4]
    told = Event.objects.get(kind="history.erasure_requested", after__erasure=all_now["id"])
    assert told.after
    assert told.after["up_to"] == 3


def test_of_deleted_streams_there_is_no_last_offset(owner: Api) -> None:
    assert owner.post(PATH, {"stream": "a", "deleted": True}).json()["up_to"] is None


def test_what_a_host_of_the_version_before_was_asked_for_has_none(owner: Api) -> None:
    stream = Stream.objects.get(workspace=owner.workspace, name="a")
    made = Erasure.objects.create(workspace=owner.workspace, stream="a", stream_id=stream.stream_id, key="k")
    shown = owner.get(f"{PATH}/{made.pk}").json()
    assert shown["up_to"] is None
    service.erasure_of_letters(made)
    assert made.dead_letters == 0


def test_of_one_message_and_in_a_group_that_went_meanwhile(owner: Api) -> None:
    stream = Stream.objects.get(workspace=owner.workspace, name="a")
    store.log().run(append(stream.stream_id, [NewMessage(id=f"m{n}", body=b"1") for n in (1, 2)]))
    for name in ("g", "h"):
        owner.post("streams/a/groups", {"name": name})
        store.log().run(groups.fetch(stream.stream_id, name, limit=10))
        store.log().run(groups.term(stream.stream_id, name, "offsets", [1, 2], reason="bad"))
    owner.post(PATH, {"stream": "a", "offset": 2})
    (taken,) = service.erasures_take()
    store.log().run(group_remove(stream.stream_id, "h"))  # as a deletion that is under way leaves it
    service.erasure_of_letters(taken)
    assert Erasure.objects.get().dead_letters == 1
    assert [letter["offset"] for letter in owner.get("streams/a/groups/g/dead-letters").json()] == [1]


def test_one_that_a_dead_process_left_is_done_again_and_a_failure_says_why(owner: Api) -> None:
    owner.post(PATH, {"stream": "a", "offset": 7})
    assert len(service.erasures_take()) == 1
    assert service.erasures_interrupted() == 1
    (again,) = service.erasures_take()
    service.erasure_failed(again, error="The disk is full.")
    (shown,) = owner.get(PATH).json()
    assert (shown["state"], shown["error"], shown["offset"]) == ("failed", "The disk is full.", 7)


def test_those_in_the_same_streams_are_done_as_one_in_the_order_of_the_oldest(owner: Api) -> None:
    asked = [
        {"stream": "a", "key": "k"},
        {"stream": "b", "key": "k"},
        {"stream": "a", "deleted": True},
        {"stream": "a", "offset": 7},
        {"stream": "b", "deleted": True},
        {"stream": "a", "deleted": True, "key": "k"},
    ]
    ids = [owner.post(PATH, each).json()["id"] for each in asked]
    taken = [[ids.index(each.pk) for each in service.erasures_take()] for _ in range(5)]
    assert taken == [[0, 3], [1], [2, 5], [4], []]


def test_it_ends_with_the_reason_where_nothing_will_work_on_it(owner: Api) -> None:
    owner.post(PATH, {"stream": "a", "offset": 7})
    assert service.erasures_refuse(reason="Java is missing.") == 1
    assert owner.get(PATH).json()[0]["error"] == "Java is missing."


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"stream": "a"}, "offset"),
        ({"stream": "a", "offset": 1, "key": "k"}, "offset"),
        ({"offset": 1}, "stream"),
        ({"deleted": True, "offset": 1}, "stream"),
        ({"workspace": "w", "stream": "a", "offset": 1}, "workspace"),
        ({"workspace": "no name", "stream": "a", "deleted": True}, "workspace"),
        ({"stream": "a", "offset": 0}, "offset"),
        ({"stream": "a", "offset": "1"}, "offset"),
        ({"stream": "a", "key": "eu.*"}, "key"),
        ({"stream": "a", "key": ""}, "key"),
        ({"stream": "a", "offset": 1, "all": True}, "all"),
        ({"stream": "a", "deleted": False}, "offset"),
        ({"stream": "a", "deleted": True, "offset": 1, "key": "k"}, "offset"),
        ({"stream": "a", "deleted": 1, "key": "k"}, "deleted"),
        ({"stream": "a", "deleted": True, "key": "k", "up_to": 1}, "up_to"),
        ({"stream": "a", "offset": 1, "up_to": 1}, "up_to"),
        ({"stream": "a", "key": "k", "up_to": -1}, "up_to"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_stored(owner: Api, sent: dict[str, Any], field: str) -> None:
    answer = owner.post(PATH, sent)
    assert (answer.status_code, code(answer), fields(answer)) == (400, "validation_error", [field])
    assert not Erasure.objects.exists()


def test_only_who_has_the_scope_may_in_the_streams_that_are_theirs(owner: Api) -> None:
    manager = caller(owner.workspace, scopes=["read", "publish", "consume", "manage"])
    assert code(manager.post(PATH, {"stream": "a", "offset": 1})) == "forbidden"
    narrowed = caller(owner.workspace, scopes=["erase"], streams=["a"])
    assert code(narrowed.post(PATH, {"stream": "b", "offset": 1})) in {"forbidden", "stream_not_found"}
    of_b = owner.post(PATH, {"stream": "b", "offset": 1}).json()
    assert code(narrowed.get(f"{PATH}/{of_b['id']}")) == "erasure_not_found"
    assert narrowed.get(PATH).json() == []
    assert narrowed.post(PATH, {"stream": "a", "offset": 1}).status_code == 202


def test_streams_that_were_deleted_are_erased_by_their_name(owner: Api) -> None:
    whole = owner.post(PATH, {"stream": "gone", "deleted": True}).json()
    owner.post(PATH, {"stream": "gone", "deleted": True, "key": "k"})
    owner.post(PATH, {"stream": "a", "key": "k"})
    assert [(each["stream"], each["deleted"]) for each in owner.get(PATH).json()] == [
        ("a", False),
        ("gone", True),
        ("gone", True),
    ]
    told = Event.objects.filter(workspace=owner.workspace.name, kind="history.erasure_requested")
    assert told.filter(after__erasure=whole["id"]).get().summary == (
        f"Erasure {whole['id']} of everything from the history of deleted streams named gone was requested."
    )
    narrowed = caller(owner.workspace, scopes=["erase"], streams=["a"])
    assert code(narrowed.post(PATH, {"stream": "gone", "deleted": True})) == "forbidden"
    manager = caller(owner.workspace, scopes=["read", "manage"])
    assert code(manager.post(PATH, {"stream": "gone", "deleted": True})) == "forbidden"


def test_what_may_not_be_deleted_is_not_erased(owner: Api) -> None:
    assert owner.post("streams", {"name": "locked", "deny_delete": True}).status_code == 201
    assert code(owner.post(PATH, {"stream": "locked", "offset": 1})) == "operation_denied"
    assert code(owner.post(PATH, {"stream": "nope", "offset": 1})) == "stream_not_found"


def test_without_a_history_there_is_nothing_to_erase(owner: Api, settings: Any) -> None:
    settings.ENV = replace(settings.ENV, history=False)
    assert code(owner.post(PATH, {"stream": "a", "offset": 1})) == "history_off"


def test_so_many_may_wait(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_UNFINISHED", 1)
    assert owner.post(PATH, {"stream": "a", "offset": 1}).status_code == 202
    assert code(owner.post(PATH, {"stream": "a", "offset": 2})) == "rate_limited"


def test_the_history_of_a_workspace_that_was_deleted_is_erased_by_who_rules_all(owner: Api) -> None:
    gone = workspace_create(name="gone", actor=SYSTEM)
    gone_id = gone.pk
    inside = caller(gone, scopes=["admin"])
    assert inside.post("streams", {"name": "a"}).status_code == 201
    assert inside.post(PATH, {"stream": "a", "key": "k"}).status_code == 202
    waiting = inside.post(PATH, {"stream": "old", "deleted": True}).json()["id"]
    ruling = caller(Workspace.objects.get_or_create(name="default")[0], scopes=["admin"])
    asked = {"workspace": "gone", "deleted": True}
    assert code(ruling.post(PATH, asked)) == "workspace_not_found"
    workspace_delete(gone, actor=SYSTEM)
    # What it had asked for is done all the same.
    kept = Erasure.objects.get(pk=waiting)
    assert (kept.deleted_workspace, kept.workspace.name, kept.state) == ("gone", "default", "queued")
    assert service.workspaces_meant(kept) == {gone_id}
    assert code(owner.post(PATH, asked)) == "forbidden"
    assert code(caller(kept.workspace, scopes=["admin"], streams=["a"]).post(PATH, asked)) == "forbidden"
    shown = ruling.post(PATH, asked).json()
    assert (shown["stream"], shown["deleted_workspace"], shown["deleted"]) == (None, "gone", True)
    assert ruling.post(PATH, {**asked, "stream": "a", "key": "k"}).json()["stream"] == "a"
    summary = Event.objects.filter(kind="history.erasure_requested").order_by("-id")[1].summary
    assert "everything from the history of all streams of the deleted workspace gone" in summary
    again = workspace_create(name="gone", actor=SYSTEM)
    assert again.pk not in service.workspaces_meant(kept), "it has the name, and is another one"


def test_streams_deleted_after_it_was_asked_for_are_spared(owner: Api) -> None:
    ids = dict(Stream.objects.filter(workspace=owner.workspace).values_list("name", "stream_id"))
    of_a = owner.post(PATH, {"stream": "a", "deleted": True}).json()["id"]
    of_b = owner.post(PATH, {"stream": "b", "deleted": True}).json()["id"]
    there = owner.post(PATH, {"stream": "a", "key": "k"}).json()["id"]
    assert service.streams_not_meant(Erasure.objects.get(pk=of_a)) >= set(ids.values())
    assert owner.delete("streams/a").status_code == 204
    assert owner.post("streams", {"name": "a"}).status_code == 201
    made_later = Stream.objects.get(workspace=owner.workspace, name="a").stream_id
    assert owner.delete("streams/a").status_code == 204
    later = owner.post(PATH, {"stream": "a", "deleted": True}).json()["id"]
    spared = dict(Erasure.objects.values_list("pk", "spared"))
    assert spared == {of_a: [ids["a"], made_later], of_b: [], there: [], later: []}
    assert not {ids["a"], made_later} & service.streams_not_meant(Erasure.objects.get(pk=later))
    taken = [[each.pk for each in service.erasures_take()] for _ in range(4)]
    assert taken == [[of_a], [of_b], [there], [later]], (
        "what is not about the same streams is not done as one"
    )
    running = Erasure.objects.get(pk=of_b)
    assert owner.delete("streams/b").status_code == 204
    assert ids["b"] in service.streams_not_meant(running)
    service.erasure_done(running, messages=0, through=0)
    assert Erasure.objects.get(pk=of_b).spared == [ids["b"]]


def test_of_a_deleted_workspace_too(owner: Api) -> None:
    ruling = caller(Workspace.objects.get_or_create(name="default")[0], scopes=["admin"])
    name = f"{owner.workspace.name}-gone"

    def made() -> tuple[Workspace, str]:
        workspace = workspace_create(name=name, actor=SYSTEM)
        assert caller(workspace, scopes=["admin"]).post("streams", {"name": "a"}).status_code == 201
        return workspace, Stream.objects.get(workspace=workspace).stream_id

    first, first_id = made()
    before = caller(first, scopes=["admin"]).post(PATH, {"stream": "a", "deleted": True}).json()["id"]
    other = caller(first, scopes=["admin"]).post(PATH, {"stream": "b", "deleted": True}).json()["id"]
    workspace_delete(first, actor=SYSTEM)
    everything = ruling.post(PATH, {"workspace": name, "deleted": True}).json()["id"]
    second, second_id = made()
    workspace_delete(second, actor=SYSTEM)
    spared = dict(Erasure.objects.values_list("pk", "spared"))
    assert spared == {before: [first_id, second_id], other: [], everything: [second_id]}


@pytest.mark.parametrize("end", ["done", "failed"])
def test_one_that_runs_while_its_workspace_is_deleted_ends_all_the_same(owner: Api, end: str) -> None:
    Workspace.objects.get_or_create(name="default")
    gone = workspace_create(name=f"gone-{end}", actor=SYSTEM)
    caller(gone, scopes=["admin"]).post(PATH, {"stream": "old", "deleted": True})
    (running,) = service.erasures_take()
    workspace_delete(gone, actor=SYSTEM)
    if end == "done":
        service.erasure_done(running, messages=3, through=9)
    else:
        service.erasure_failed(running, error="The disk is full.")
    kept = Erasure.objects.get(pk=running.pk)
    assert (kept.workspace.name, kept.deleted_workspace) == ("default", f"gone-{end}")
    assert (kept.state, kept.key) == ("succeeded" if end == "done" else "failed", "")
    told = Event.objects.get(kind=f"history.erasure_{end}", workspace="default")
    assert f"of the deleted workspace gone-{end}" in told.summary
