"""Plans: what they bound, and what lowering one does, said first."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from streams import store
from streams.access import SYSTEM
from streams.errors import Refusal
from streams.log import config
from streams.log.append import append
from streams.models import CAPS, Cap, Event, Policy, Stream, Workspace
from streams.selectors import events_prove
from streams.services.policies import policy_create
from streams.services.streams import stream_create
from tests.streams.api.conftest import Api, code, fields
from tests.streams.log.messages import message

DAY_S = 86_400
GIB = 2**30


def plan(ruler: Api, owner: Api, name: str) -> Any:
    return ruler.patch(f"workspaces/{owner.workspace.name}", {"plan": name})


def preview(ruler: Api, owner: Api, name: str) -> Any:
    answer = ruler.post(f"workspaces/{owner.workspace.name}/plan/preview", {"plan": name})
    assert answer.status_code == 200, answer.content
    return answer.json()


def limits(owner: Api, name: str) -> tuple[int | None, int | None]:
    stream = owner.get(f"streams/{name}").json()
    return stream["ttl"], stream["max_bytes"]


@pytest.mark.parametrize(
    ("name", "default", "most"),
    [("free", (DAY_S, GIB), (7 * DAY_S, GIB)), ("pro", (7 * DAY_S, 100 * GIB), (30 * DAY_S, 100 * GIB))],
)
def test_a_plan_gives_defaults_and_null_means_the_most(
    ruler: Api, owner: Api, name: str, default: tuple[int, int], most: tuple[int, int]
) -> None:
    assert plan(ruler, owner, name).json()["plan"] == name
    owner.post("streams/", {"name": "said-nothing"})
    owner.post("streams/", {"name": "said-null", "ttl": None, "max_bytes": None})
    assert limits(owner, "said-nothing") == default
    assert limits(owner, "said-null") == most


@pytest.mark.parametrize(("field", "value"), [("ttl", 7 * DAY_S + 1), ("max_bytes", GIB + 1)])
def test_above_the_cap_is_refused_by_name(ruler: Api, owner: Api, field: str, value: int) -> None:
    plan(ruler, owner, "free")
    answer = owner.post("streams/", {"name": "a", field: value})
    assert (answer.status_code, code(answer), fields(answer)) == (403, "quota_exceeded", [field])
    assert answer.json()["error"]["details"]["allowed"] == value - 1


def test_lowering_a_plan_says_first_what_it_does_and_does_it(ruler: Api, owner: Api) -> None:
    owner.post(
        "streams/", [{"name": "long", "ttl": 90 * DAY_S}, {"name": "short", "ttl": 60, "max_bytes": 5}]
    )
    expected = {
        "plan": "free",
        "streams": [
            {
                "name": "long",
                "before": {"ttl": 90 * DAY_S, "max_bytes": None},
                "after": {"ttl": 7 * DAY_S, "max_bytes": GIB},
                "messages": 0,
                "groups": [],
                "groups_losing": 0,
                "unread": 0,
                "complete": True,
                "reason": None,
            }
        ],
        "messages": 0,
        "groups_losing": 0,
        "unread": 0,
        "complete": True,
    }
    assert preview(ruler, owner, "free") == expected
    assert limits(owner, "long") == (90 * DAY_S, None), "a preview changes nothing"
    plan(ruler, owner, "free")
    assert limits(owner, "long") == (7 * DAY_S, GIB)
    assert limits(owner, "short") == (60, 5)
    stream = Stream.objects.get(workspace=owner.workspace, name="long")
    published = store.log().run(config.stream_settings(stream.stream_id))
    assert published is not None
    assert published["ttl"] == 7 * DAY_S
    kinds = Event.objects.filter(workspace=owner.workspace.name).order_by("id").values_list("kind", "stream")
    assert list(kinds)[-2:] == [("stream.changed", "long"), ("workspace.changed", "")]
    assert preview(ruler, owner, "free")["streams"] == []


def test_a_higher_plan_leaves_streams_as_they_are(ruler: Api, owner: Api) -> None:
    plan(ruler, owner, "free")
    owner.post("streams/", {"name": "a"})
    plan(ruler, owner, "unlimited")
    assert limits(owner, "a") == (DAY_S, GIB)


def test_the_preview_counts_what_would_go(ruler: Api, owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.post("streams/", {"name": "a"})
    stream = Stream.objects.get(workspace=owner.workspace, name="a")
    store.log().run(append(stream.stream_id, [message(n, body=b'"12345678"') for n in range(10)]))
    monkeypatch.setitem(CAPS, "free", Cap(60, 60, 30))
    assert preview(ruler, owner, "free")["messages"] == 7
    plan(ruler, owner, "free")
    assert owner.get("streams/a").json()["messages"] == 3
    assert events_prove().faults == []


def test_a_stream_is_bound_by_the_plan_of_its_moment(ruler: Api, owner: Api) -> None:
    stale = Workspace.objects.get(pk=owner.workspace.pk)
    plan(ruler, owner, "free")
    made, _ = stream_create(stale, name="late", settings={}, actor=SYSTEM)
    assert made.ttl == DAY_S


def test_a_policy_is_bound_by_the_plan_of_its_moment(ruler: Api, owner: Api) -> None:
    stale = Workspace.objects.get(pk=owner.workspace.pk)
    plan(ruler, owner, "free")
    with pytest.raises(Refusal) as refused:
        policy_create(stale, name="late", settings={"ttl": 300 * DAY_S}, actor=SYSTEM)
    assert refused.value.code == "quota_exceeded"
    assert not Policy.objects.filter(workspace=stale).exists()


def test_no_policy_and_no_stream_stays_above_a_plan_that_is_lowered_meanwhile(ruler: Api, owner: Api) -> None:
    owner.post("policies/", {"name": "held"})
    owner.post("streams/", {"name": "held"})
    begin = Barrier(4)

    def at_once(act: Callable[[Api], Any]) -> None:
        begin.wait()
        try:
            act(Api(owner.secret, owner.workspace))
        finally:
            connection.close()

    def lower(_: Api) -> None:
        assert plan(Api(ruler.secret, ruler.workspace), owner, "free").status_code == 200

    long = {"ttl": 300 * DAY_S}
    for round_ in range(6):
        plan(ruler, owner, "unlimited")
        acts: list[Callable[[Api], Any]] = [
            lower,
            lambda api, name=f"p{round_}": api.post("policies/", {"name": name, **long}),  # type: ignore[misc]
            lambda api: api.patch("policies/held", long),
            lambda api: api.patch("streams/held", long),
        ]
        with ThreadPoolExecutor(len(acts)) as pool:
            list(pool.map(at_once, acts))
        most = CAPS["free"].bounds["ttl"].most
        assert most is not None
        for model in (Policy, Stream):
            assert not model.objects.filter(workspace=owner.workspace, ttl__gt=most).exists()


@pytest.mark.parametrize("body", [{}, {"plan": "gold"}, {"plan": None}, {"plan": "free", "x": 1}])
def test_a_wrong_preview_is_refused(ruler: Api, owner: Api, body: dict[str, Any]) -> None:
    answer = ruler.post(f"workspaces/{owner.workspace.name}/plan/preview", body)
    assert code(answer) == "validation_error"


def test_only_who_rules_all_looks_at_plans(owner: Api) -> None:
    answer = owner.post(f"workspaces/{owner.workspace.name}/plan/preview", {"plan": "free"})
    assert code(answer) == "forbidden"
