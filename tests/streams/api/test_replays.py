"""Replays over HTTP: asked for, listed, started, paused, cancelled, and by whom. Spark is not here."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from streams import store
from streams.access import SYSTEM, Caller
from streams.log import config, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Event, Replay, Stream
from streams.services import replays as service
from streams.services import replays_old
from tests.streams.api.conftest import Api, caller, code, fields

PATH = "analytics/replays"


@pytest.fixture(autouse=True)
def no_replays(database: None) -> None:
    Replay.objects.all().delete()


@pytest.fixture
def owner(owner: Api) -> Api:
    for name in ("a", "b"):
        assert owner.post("streams", {"name": name}).status_code == 201
    return owner


def asked(api: Api, **more: Any) -> Any:
    answer = api.post(PATH, {"source": "a", "target": "b", **more})
    assert answer.status_code == 202, answer.content
    return answer.json()


def counted(shown: Any, messages: int = 10) -> Replay:
    replay = Replay.objects.get(pk=shown["id"])
    service.replay_counted(replay, messages=messages, size=100, first=1, last=messages)
    replay.refresh_from_db()
    return replay


def test_what_was_asked_for_is_shown(owner: Api) -> None:
    answer = owner.post(
        f"{PATH}/",
        {
            "source": "a",
            "target": "b",
            "from_offset": 5,
            "to_offset": 9,
            "from": "2026-11-20T00:00:00+01:00",
            "to": "2026-11-21T00:00:00Z",
            "key": "eu.*",
            "where": "bytes > 3",
            "ids": "new",
            "rate": 500,
            "start": False,
        },
    )
    shown = answer.json()
    assert (answer.status_code, answer.headers["Location"]) == (202, shown["url"])
    assert shown["url"] == f"http://testserver/api/v1/{PATH}/{shown['id']}"
    assert (shown["from"], shown["to"]) == ("2026-11-19T23:00:00.000Z", "2026-11-21T00:00:00.000Z")
    assert (shown["key"], shown["ids"], shown["rate"], shown["from_offset"]) == ("eu.*", "new", 500, 5)
    assert shown["where"] == "bytes > 3"
    assert (shown["state"], shown["total"], shown["progress"]) == ("counting", None, 0.0)
    assert owner.get(f"{PATH}/{shown['id']}").json() == shown
    assert shown.pop("pushes_out") is None
    assert owner.get(f"{PATH}/").json() == [shown]
    assert Event.objects.get(kind="history.replay_requested", workspace=owner.workspace.name).stream == "b"


def test_the_count_is_known_before_anything_is_published(owner: Api) -> None:
    shown = asked(owner, start=False)
    counted(shown)
    ready = owner.get(f"{PATH}/{shown['id']}").json()
    assert (ready["state"], ready["total"], ready["total_bytes"]) == ("ready", 10, 100)
    nothing = {"messages": 0, "bytes": 0, "groups": [], "arriving": 0, "refused": 0, "reason": None}
    assert ready["pushes_out"] == nothing
    owner.patch("streams/b", {"max_messages": 7})
    again = owner.get(f"{PATH}/{shown['id']}").json()
    assert again["pushes_out"] == {**nothing, "arriving": 3}
    started = owner.post(f"{PATH}/{shown['id']}/start")
    assert (started.status_code, started.json()["state"]) == (200, "running")


def test_it_is_paused_and_goes_on_where_it_was(owner: Api) -> None:
    shown = asked(owner)
    replay = counted(shown)
    service.replay_begins(replay, target_offset=0)
    assert service.replay_sent(replay, position=4, stored=3, duplicates=1, target_offset=3, sending_to=8)
    paused = owner.post(f"{PATH}/{shown['id']}/pause").json()
    assert (paused["state"], paused["progress"], paused["position"]) == ("paused", 0.4, 4)
    assert not service.replay_sending(replay, to=9)
    assert code(owner.post(f"{PATH}/{shown['id']}/pause")) == "replay_state"
    assert owner.post(f"{PATH}/{shown['id']}/start").json()["state"] == "running"
    service.replay_done(replay)
    done = owner.get(f"{PATH}/{shown['id']}").json()
    assert (done["state"], done["progress"], done["stored"], done["duplicates"]) == ("succeeded", 1.0, 3, 1)
    assert owner.post(f"{PATH}/{shown['id']}/start").status_code == 409


def test_a_failure_is_told_and_started_again(owner: Api) -> None:
    shown = asked(owner)
    assert service.replays_refuse(reason="Java is missing.") == 1
    failed = owner.get(f"{PATH}/{shown['id']}").json()
    assert (failed["state"], failed["error"]) == ("failed", "Java is missing.")
    again = owner.post(f"{PATH}/{shown['id']}/start").json()
    assert (again["state"], again["error"]) == ("counting", None)


def test_one_whose_count_failed_is_counted_again_and_waits_to_be_started(owner: Api) -> None:
    shown = asked(owner)
    service.replay_failed(Replay.objects.get(pk=shown["id"]), error="Spark is away.")
    assert owner.post(f"{PATH}/{shown['id']}/start").json()["state"] == "counting"
    assert counted(shown).state == "ready"
    assert owner.post(f"{PATH}/{shown['id']}/start").json()["state"] == "running"


def test_one_that_goes_on_after_a_failure_has_not_finished(owner: Api) -> None:
    shown = asked(owner)
    for is_counted in (False, True):
        if is_counted:
            counted(shown)
            owner.post(f"{PATH}/{shown['id']}/start")
        service.replay_failed(Replay.objects.get(pk=shown["id"]), error="Spark is away.")
        assert owner.get(f"{PATH}/{shown['id']}").json()["finished_at"] is not None
        assert owner.post(f"{PATH}/{shown['id']}/start").json()["finished_at"] is None


def test_cancelling_is_for_good(owner: Api) -> None:
    shown = asked(owner)
    assert owner.delete(f"{PATH}/{shown['id']}").status_code == 204
    assert owner.delete(f"{PATH}/{shown['id']}").status_code == 204
    counted(shown)
    assert owner.get(f"{PATH}/{shown['id']}").json()["state"] == "cancelled"
    assert code(owner.post(f"{PATH}/{shown['id']}/start")) == "replay_state"
    kinds = Event.objects.filter(workspace=owner.workspace.name, kind="history.replay_cancelled")
    assert kinds.count() == 1


def test_messages_keep_their_ids_but_not_into_their_own_stream(owner: Api) -> None:
    assert asked(owner)["ids"] == "keep"
    assert asked(owner, target="a")["ids"] == "new"
    assert asked(owner, target="a", ids="keep")["ids"] == "keep"


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ({"source": 5}, "source"),
        ({"target": "*"}, "target"),
        ({"from_offset": 0}, "from_offset"),
        ({"from_offset": 9, "to_offset": 8}, "from_offset"),
        ({"from": "yesterday"}, "from"),
        ({"from": "2026-11-21T00:00:00Z", "to": "2026-11-21T00:00:00Z"}, "from"),
        ({"key": "a..b"}, "key"),
        ({"key": ""}, "key"),
        ({"ids": "old"}, "ids"),
        ({"rate": 0}, "rate"),
        ({"rate": 1_000_001}, "rate"),
        ({"start": "no"}, "start"),
        ({"sql": "SELECT 1"}, "sql"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(owner: Api, more: dict[str, Any], refused: str) -> None:
    answer = owner.post(PATH, {"source": "a", "target": "b", **more})
    assert answer.status_code == 400
    assert fields(answer) == [refused]
    assert not Replay.objects.exists()


def test_both_streams_must_be_there_and_the_target_open(owner: Api) -> None:
    for body in ({"source": "x", "target": "b"}, {"source": "a", "target": "x"}):
        assert code(owner.post(PATH, body)) == "stream_not_found"
    owner.patch("streams/b", {"sealed": True})
    assert code(owner.post(PATH, {"source": "a", "target": "b"})) == "operation_denied"
    assert not Replay.objects.exists()


def test_it_needs_manage_and_publish_and_both_streams_inside_a_narrowed_token(owner: Api) -> None:
    shown = asked(owner)
    for scopes in (["read", "publish"], ["read", "manage"], ["publish", "manage"]):
        answer = caller(owner.workspace, scopes=scopes).post(PATH, {"source": "a", "target": "b"})
        assert (answer.status_code, code(answer)) == (403, "forbidden")
    narrow = caller(owner.workspace, streams=["a"])
    assert code(narrow.post(PATH, {"source": "a", "target": "b"})) == "forbidden"
    assert narrow.get(PATH).json() == []
    for answer in (
        narrow.get(f"{PATH}/{shown['id']}"),
        narrow.delete(f"{PATH}/{shown['id']}"),
        narrow.post(f"{PATH}/{shown['id']}/pause"),
    ):
        assert code(answer) == "replay_not_found"
    manager = caller(owner.workspace, scopes=["read", "manage"])
    assert code(manager.post(f"{PATH}/{shown['id']}/start")) == "forbidden"
    assert Replay.objects.count() == 1


def test_a_stranger_sees_none_and_touches_none(owner: Api, stranger: Api) -> None:
    shown = asked(owner)
    assert stranger.get(PATH).json() == []
    for answer in (
        stranger.get(f"{PATH}/{shown['id']}"),
        stranger.delete(f"{PATH}/{shown['id']}"),
        stranger.post(f"{PATH}/{shown['id']}/start"),
        stranger.post(f"{PATH}/{shown['id']}/pause"),
        owner.get(f"{PATH}/x"),
        owner.get(f"{PATH}/{'9' * 30}"),
    ):
        assert (answer.status_code, code(answer)) == (404, "replay_not_found")
    assert Replay.objects.get().state == "counting"


def test_a_workspace_has_so_many_under_way(owner: Api) -> None:
    for _ in range(service.MOST_UNFINISHED):
        asked(owner)
    answer = owner.post(PATH, {"source": "a", "target": "b"})
    assert (answer.status_code, code(answer)) == (429, "rate_limited")


def test_as_many_are_under_way_where_they_waited_for_their_start(owner: Api) -> None:
    waiting = []
    for _ in range(service.MOST_UNFINISHED + 2):
        waiting.append(asked(owner, start=False)["id"])
        counted({"id": waiting[-1]})
    service.replay_failed(Replay.objects.get(pk=asked(owner)["id"]), error="Java is missing.")
    waiting.append(Replay.objects.latest("id").pk)
    answers = [owner.post(f"{PATH}/{each}/start") for each in waiting]
    assert [each.status_code for each in answers] == [200] * service.MOST_UNFINISHED + [429] * 3
    assert code(answers[-1]) == "rate_limited"
    assert Replay.objects.filter(state__in=service.WORKING).count() == service.MOST_UNFINISHED
    assert owner.post(f"{PATH}/{waiting[0]}/pause").status_code == 200
    assert owner.post(f"{PATH}/{waiting[-1]}/start").status_code == 200
    assert code(owner.post(f"{PATH}/{waiting[0]}/start")) == "rate_limited"


def test_a_workspace_has_so_many_that_wait_or_rest(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_HELD", 4)
    waiting = [asked(owner, start=False)["id"] for _ in range(4)]
    for each in waiting[:3]:
        counted({"id": each})
    owner.post(f"{PATH}/{waiting[0]}/start")
    owner.post(f"{PATH}/{waiting[0]}/pause")
    refused = owner.post(PATH, {"source": "a", "target": "b"})
    assert (refused.status_code, code(refused)) == (409, "replay_state")
    assert "4 replays" in refused.json()["error"]["message"]
    assert owner.post(f"{PATH}/{waiting[0]}/start").status_code == 200
    service.replay_failed(Replay.objects.get(pk=waiting[0]), error="Java is missing.")
    assert owner.post(PATH, {"source": "a", "target": "b"}).status_code == 202
    assert code(owner.post(f"{PATH}/{waiting[0]}/start")) == "replay_state", "it ended, and is one more again"
    assert owner.post(f"{PATH}/{waiting[1]}/start").status_code == 200
    assert owner.delete(f"{PATH}/{waiting[2]}").status_code == 204
    assert owner.post(f"{PATH}/{waiting[0]}/start").status_code == 200


def test_what_nobody_touches_for_long_is_over_and_goes_later(owner: Api) -> None:
    left, paused, running, counting = (asked(owner, start=False)["id"] for _ in range(4))
    for each in (left, paused, running):
        counted({"id": each})
    for each in (paused, running):
        owner.post(f"{PATH}/{each}/start")
    owner.post(f"{PATH}/{paused}/pause")

    def states() -> dict[int, str]:
        return {shown["id"]: shown["state"] for shown in owner.get(PATH).json()}

    at_first = {left: "ready", paused: "paused", running: "running", counting: "counting"}
    now = timezone.now()
    Replay.objects.update(created_at=now - replays_old.KEPT - timedelta(days=1))
    replays_old.replays_forget(now=now)
    assert states() == at_first, "somebody asked for each, or paused it, just now"
    later = now + replays_old.KEPT + timedelta(days=1)
    replays_old.replays_forget(now=later)
    assert states() == {**at_first, left: "cancelled", paused: "cancelled"}
    over = owner.get(f"{PATH}/{left}").json()
    assert over["error"] == "Nobody started it, or had it go on, for 30 days."
    told = Event.objects.filter(kind="history.replay_cancelled", workspace=owner.workspace.name)
    assert {(each.actor, (each.after or {})["replay"]) for each in told} == {
        ("system", left),
        ("system", paused),
    }
    replays_old.replays_forget(now=later)
    assert states() == {running: "running", counting: "counting"}


def test_where_nothing_would_work_on_it_that_is_said_at_once(owner: Api, settings: Any) -> None:
    settings.ENV = replace(settings.ENV, history=False)
    assert code(owner.post(PATH, {"source": "a", "target": "b"})) == "history_off"


@pytest.fixture
def group(owner: Api) -> str:
    assert owner.post("streams/a/groups", {"name": "g"}).status_code == 201
    return "g"


def for_group(api: Api, **more: Any) -> Any:
    answer = api.post(PATH, {"source": "a", "group": "g", **more})
    assert answer.status_code == 202, answer.content
    return answer.json()


def test_one_for_a_group_is_shown_with_it(owner: Api, group: str) -> None:
    shown = for_group(owner, start=False)
    assert (shown["source"], shown["target"], shown["group"], shown["ids"]) == ("a", "a", "g", "keep")
    replay = counted(shown)
    ready = owner.get(f"{PATH}/{shown['id']}").json()
    assert ready["pushes_out"]["messages"] == ready["pushes_out"]["arriving"] == 0
    service.replay_start(Caller(owner.workspace, frozenset({"manage", "read"}), SYSTEM), replay)
    replay.refresh_from_db()
    assert service.replay_brought(replay, position=4, given=3, passed=1, waits_for="group")
    running = owner.get(f"{PATH}/{shown['id']}").json()
    assert (running["state"], running["waits_for"]) == ("running", "group")
    assert (running["stored"], running["duplicates"], running["progress"]) == (3, 1, 0.4)
    paused = owner.post(f"{PATH}/{shown['id']}/pause").json()
    assert (paused["state"], paused["waits_for"]) == ("paused", None)
    assert not service.replay_brought(replay, position=5, given=4, passed=1)
    assert asked(owner)["group"] is None
    requested = Event.objects.filter(kind="history.replay_requested", workspace=owner.workspace.name)
    assert requested.earliest("pk").group == "g"


@pytest.mark.parametrize(
    ("sent", "refused"),
    [
        ({"source": "a"}, ("validation_error", ["target"])),
        ({"source": "a", "group": "g", "target": "b"}, ("validation_error", ["target"])),
        ({"source": "a", "group": "g", "ids": "new"}, ("validation_error", ["ids"])),
        ({"source": "a", "group": "nobody"}, ("group_not_found", None)),
        ({"source": "b", "group": "g"}, ("group_not_found", None)),
    ],
)
def test_what_is_no_group_of_the_source_gets_nothing(
    owner: Api, group: str, sent: dict[str, Any], refused: tuple[str, list[str] | None]
) -> None:
    answer = owner.post(PATH, sent)
    assert code(answer) == refused[0]
    assert refused[1] is None or fields(answer) == refused[1]


def test_a_seek_begins_one_and_ends_the_one_before(owner: Api, group: str) -> None:
    stream_id = Stream.objects.get(workspace=owner.workspace, name="a").stream_id
    store.log().run(append(stream_id, [NewMessage(id=str(n), body=b"1") for n in range(5)]))
    owner.patch("streams/a", {"max_messages": 2})
    store.log().run(trim.apply_limits(stream_id))
    store.log().run(config.archived_set(stream_id, 3))
    wanted = {"position": "offset", "offset": 2, "history": True}
    dry = owner.post("streams/a/groups/g/seek", {**wanted, "dry_run": True}).json()["gone"]
    assert (dry["messages"], dry["begun"], dry["replay"]["group"]) == (2, None, "g")
    assert not Replay.objects.exists()
    first = owner.post("streams/a/groups/g/seek", wanted).json()["gone"]["begun"]
    assert (first["state"], first["group"], first["from_offset"], first["to_offset"]) == (
        "counting",
        "g",
        2,
        3,
    )
    assert Replay.objects.get().starts
    second = owner.post("streams/a/groups/g/seek", wanted).json()["gone"]["begun"]
    over = owner.get(f"{PATH}/{first['id']}").json()
    assert (over["state"], over["error"]) == ("cancelled", "Group g was moved to another position.")
    assert code(owner.post(f"{PATH}/{first['id']}/start")) == "replay_state"
    owner.delete("streams/a/groups/g")
    over = owner.get(f"{PATH}/{second['id']}").json()
    assert (over["state"], over["error"]) == ("cancelled", "Group g was deleted.")


def test_who_may_not_begin_one_moves_nothing(owner: Api, group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"position": "latest", "history": True}
    monkeypatch.setattr(service, "MOST_UNFINISHED", 0)
    assert code(owner.post("streams/a/groups/g/seek", wanted)) == "rate_limited"
    assert owner.post("streams/a/groups/g/seek", {"position": "latest"}).status_code == 200


def test_a_group_needs_the_right_to_manage_and_to_read_and_none_to_publish(owner: Api, group: str) -> None:
    wanted = {"source": "a", "group": "g"}
    seek = {"position": "latest", "history": True}
    for scopes, streams, status in [
        (["manage", "read"], [], 202),
        (["manage", "read"], ["a"], 202),
        (["manage", "read"], ["b"], 403),
        (["manage", "publish"], [], 403),
        (["read", "publish"], [], 403),
    ]:
        api = caller(owner.workspace, scopes=scopes, streams=streams)
        assert api.post(PATH, wanted).status_code == status, scopes
        assert (api.post("streams/a/groups/g/seek", seek).status_code == 403) == (status == 403), scopes
