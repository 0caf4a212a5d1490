"""A workspace with one of everything on both sides of what somebody is narrowed to.

Inside is the stream ``orders`` of ``test_roles``; everything outside has ``canary`` in its name, and in what it holds.
"""

import json
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from streams import store
from streams.access import Actor, Caller
from streams.log import damages, flow, stats
from streams.log.append import append
from streams.log.damages import Noted
from streams.log.entries import NewMessage
from streams.log.flow import Flow
from streams.models import (
    Alert,
    AlertRule,
    DemoRun,
    Erasure,
    Query,
    Replay,
    ReplayState,
    Role,
    Run,
    Stream,
    Workspace,
)
from streams.selectors import METRICS_STREAM
from streams.services.alerts import rule_create
from streams.services.events import event_record
from streams.services.messages import stream_purge
from streams.services.people import person_add
from streams.services.policies import policy_create
from streams.services.queries import saved_query_put
from streams.services.saved_filters import filter_save
from streams.services.streams import internal_stream, stream_change
from streams.services.tokens import token_create
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import bury, fetched, make_group
from tests.dashboard.moving import sampled

OUTSIDE, WORD = "canary-1", "canary"
PATTERNS = ["ord*", "shop-*"]
MANY, ALL = 1237, 1240
"""Messages outside, and with those inside."""

RULE: dict[str, Any] = {"watch": "lag", "limit": 2}
ADMIN = Actor(f"{WORD}-admin")


@dataclass(frozen=True)
class House:
    """A workspace with one of everything on both sides; the ids are of what lies outside."""

    inside: Stream
    outside: Stream
    query_id: int
    filter_id: int
    token_id: int
    replay_id: int

    @property
    def ids(self) -> dict[str, int]:
        return {
            "query_id": self.query_id,
            "filter_id": self.filter_id,
            "token_id": self.token_id,
            "replay_id": self.replay_id,
        }


def furnished(workspace: Workspace, make_stream: MakeStream) -> House:
    """Something of everything on both sides."""
    inside = make_stream("orders", bodies=[b"1", b"22"])
    outside = make_stream(OUTSIDE, description=f"{WORD} described", labels={"team": WORD, "env": "test"})
    held = [NewMessage(id=f"{WORD}-{n}", key=f"{WORD}.{n}", body=b'"canary-body"') for n in range(MANY + 1)]
    for first in range(0, len(held), 500):
        store.log().run(append(outside.stream_id, held[first : first + 500]))
    store.log().run(stats.touch([outside.stream_id]))
    make_group(inside)
    group = make_group(outside, f"{WORD}-group")
    bury(group, count=2, why=f"{WORD} died")
    fetched(group, limit=2)
    stream_purge(outside, key=f"{WORD}.9", actor=ADMIN)
    policy_create(workspace, name=f"{WORD}-policy", settings={"ttl": 99}, actor=ADMIN)
    stream_change(outside, changes={"policy": f"{WORD}-policy"}, actor=ADMIN)
    _rules(workspace)
    everything = Caller(workspace, frozenset({"admin"}), ADMIN, role=Role.ADMIN)
    saved_query_put(everything, name=f"{WORD}-query", sql=f"SELECT '{WORD}'")
    kept, _ = filter_save(
        everything, page="streams", name=f"{WORD}-filter", query=f"name={WORD}", shared=True
    )
    filter_save(everything, page="events", name=f"{WORD}-filter", query=f"stream={WORD}", shared=True)
    person_add(workspace, name=f"{WORD}-person", role=Role.VIEWER, actor=ADMIN, may_share=True)
    token, _ = token_create(workspace, name=f"{WORD}-token", scopes=["read"], streams=[OUTSIDE], actor=ADMIN)
    token_create(workspace, name=f"{WORD}-of-all", scopes=["read"], actor=ADMIN)
    query = Query.objects.create(
        workspace=workspace,
        sql=f"SELECT '{WORD}'",
        limit=9,
        state="succeeded",
        columns=[[WORD, "string"]],
        rows=json.dumps([[WORD]]),
        row_count=1,
        asked_by=ADMIN.name,
    )
    DemoRun.objects.create(stream=outside, ends_at=timezone.now() + timedelta(minutes=9))
    replay = _replay(inside, outside)
    Erasure.objects.create(
        workspace=workspace,
        stream=outside.name,
        stream_id=outside.stream_id,
        key=f"{WORD}.1",
        error=f"{WORD} erred",
        requested_by=ADMIN.name,
    )
    Run.objects.create(
        job="archive", state="failed", counts={OUTSIDE: MANY, "messages": MANY}, error=f"{OUTSIDE}: no room"
    )
    _moving(inside, outside)
    # The last of all, so that a timeline of the messages holds everything that happened.
    store.log().run(append(inside.stream_id, [NewMessage(id="m3", body=b"333")]))
    store.log().run(stats.touch([inside.stream_id]))
    return House(inside, outside, query.pk, kept.pk, token.pk, replay.pk)


def _rules(workspace: Workspace) -> None:
    """A rule on each side, and one of all that fires about both; its own name may be told."""
    for name, stream in (("orders", "orders"), (f"{WORD}-rule", OUTSIDE), ("of-all", "*")):
        rule_create(workspace, name=name, settings={"stream": stream, **RULE}, actor=ADMIN)
    rule = AlertRule.objects.get(workspace=workspace, name="of-all")
    for stream in ("orders", OUTSIDE):
        for ended in (None, timezone.now()):
            Alert.objects.create(
                rule=rule, stream=stream, began_at=timezone.now(), ended_at=ended, value=3, sentence=stream
            )


def _replay(inside: Stream, outside: Stream) -> Replay:
    """Out of what lies outside, into what lies inside: an event of both."""
    replay = Replay.objects.create(
        workspace=inside.workspace,
        source=outside.name,
        source_id=outside.stream_id,
        target=inside.name,
        target_id=inside.stream_id,
        state=ReplayState.READY,
        total=MANY,
        requested_by=ADMIN.name,
    )
    event_record(
        inside.workspace,
        kind="history.replay_requested",
        actor=ADMIN,
        stream=inside.name,
        after={"replay": replay.pk, "source": outside.name, "total": MANY},
        summary=f"Replay {replay.pk} of {outside.name} into {inside.name} was requested.",
    )
    return replay


def _moving(inside: Stream, outside: Stream) -> None:
    """What the worker tells of the last seconds: 3 messages a second inside, and many more outside."""
    metrics, now = internal_stream(METRICS_STREAM, archive=False), int(time.time())
    Stream.objects.filter(pk=metrics.pk).update(created_at="2020-01-01T00:00Z")
    for ago in range(30, 0, -1):
        sampled(metrics, at_s=now - ago, moved={inside: 3, outside: MANY})
        total = Flow((now - ago) * 1000, float(ALL), float(2 * ALL), 2.0)
        store.log().run(flow.note({inside.workspace_id: total}))
    met = [(outside.stream_id, ""), (outside.stream_id, f"{WORD}-group"), ("", "")]
    store.log().run(damages.note([Noted(*each, f"{WORD} cannot be read") for each in met]))
