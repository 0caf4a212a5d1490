"""A preview of a stream's limits refuses what saving them would refuse, in the same way, and nothing else."""

import random
from typing import Any

import pytest

from streams.models import Workspace
from tests.streams.api.conftest import Api, code, fields

SETUPS: dict[str, dict[str, Any]] = {
    "own": {"ttl": 3600},
    "policy": {"policy": "week"},
    "sealed": {"ttl": 3600, "sealed": True},
    "sealed-policy": {"policy": "week", "sealed": True},
    "memory": {"storage": "memory", "max_messages": 5},
}

VALUES: dict[str, tuple[Any, ...]] = {
    "ttl": (None, 3600, 7200, 604_800, 40 * 86_400, 0, "5", 1.5),
    "max_messages": (None, 5, 0, -1, True),
    "max_bytes": (None, 1000, 2 * 1024**3, 0),
    "max_messages_per_key": (None, 1, 0),
    "retention": ("limits", "interest", "none"),
    "discard": ("old", "new", "newest"),
    "policy": (None, "week", "month", "nope", "a b", 5),
    "storage": ("durable", "memory", "tape"),
    "unheard": (1,),
}


@pytest.fixture
def streams(owner: Api) -> list[str]:
    Workspace.objects.filter(pk=owner.workspace.pk).update(plan="free")
    owner.workspace.refresh_from_db()
    for name, ttl in (("week", 604_800), ("month", 3600)):
        assert owner.post("policies/", {"name": name, "ttl": ttl}).status_code == 201
    for name, settings in SETUPS.items():
        assert owner.post("streams/", {"name": name, **settings}).status_code == 201, name
    return list(SETUPS)


def verdict(answer: Any) -> tuple[int, str, list[str]]:
    if answer.status_code == 200:
        return 200, "", []
    return answer.status_code, code(answer), sorted(answer.json()["error"]["details"].get("fields", []))


def test_what_a_stream_with_a_policy_does_not_take_is_not_previewed(owner: Api, streams: list[str]) -> None:
    for path in ("retention/preview", "retention/forecast"):
        answer = owner.post(f"streams/policy/{path}", {"ttl": 60})
        assert (answer.status_code, code(answer), fields(answer)) == (400, "validation_error", ["ttl"])
        assert owner.post(f"streams/policy/{path}", {"ttl": 60, "policy": None}).status_code == 200
        answer = owner.post(f"streams/sealed/{path}", {"ttl": 60})
        assert (answer.status_code, code(answer)) == (403, "operation_denied")


def test_saving_and_asking_have_one_verdict(owner: Api, streams: list[str]) -> None:
    drawn = random.Random(5)
    seen = set()
    for _ in range(240):
        stream = drawn.choice(streams)
        names = drawn.sample(sorted(VALUES), drawn.choice((0, 1, 1, 2, 3)))
        wanted = {name: drawn.choice(VALUES[name]) for name in names}
        asked = verdict(owner.post(f"streams/{stream}/retention/preview", wanted))
        foreseen = verdict(owner.post(f"streams/{stream}/retention/forecast", wanted))
        saved = verdict(owner.patch(f"streams/{stream}", wanted))
        assert asked == foreseen == saved, (stream, wanted)
        seen.add(asked[1])
    assert seen == {"", "validation_error", "quota_exceeded", "operation_denied"}
