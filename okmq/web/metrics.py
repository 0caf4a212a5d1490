"""``/metrics``: how everything stands, for Prometheus and whoever reads OpenMetrics."""

import time
from typing import ClassVar

from django.conf import settings
from django.http import HttpResponse
from rest_framework.request import Request

from okmq.supervision import resp
from okmq.web.families import (
    group_families,
    history_families,
    process_families,
    store_families,
    stream_families,
    traffic_families,
    worker_families,
)
from okmq.web.openmetrics import CONTENT_TYPE, Family, text_of
from streams import selectors, store
from streams.access import Actor, Caller
from streams.api.authentication import TokenOrSession
from streams.api.base import ApiView
from streams.api.operation import Operation
from streams.log import server, traffic
from streams.log.errors import LogError
from streams.log.server import ServerState
from streams.models import DEFAULT_WORKSPACE, Token, Workspace
from streams.selectors.monitoring import groups_monitored, streams_monitored
from streams.upkeep import processes

SCRAPE_TIMEOUT_S = 2.0
"""So long each store has to answer; Prometheus drops a scrape after ten seconds unless it is told otherwise."""


class TokenSessionOrAnybody(TokenOrSession):
    """Anybody sees everything where ``OKMQ_PUBLIC_METRICS`` says so."""

    def authenticate(self, request: Request) -> tuple[Caller, Token | None]:  # type: ignore[override]
        if settings.ENV.public_metrics and "HTTP_AUTHORIZATION" not in request.META:
            default = Workspace.objects.get(name=DEFAULT_WORKSPACE)
            return Caller(workspace=default, scopes=frozenset({"admin"}), actor=Actor("anybody")), None
        return super().authenticate(request)


class MetricsView(ApiView):
    """``/metrics``

    A caller sees the streams of the own workspace inside the patterns that narrow it. Who rules all workspaces sees
    the streams of all, and the service itself: requests, processes, store.
    """

    authentication_classes = (TokenSessionOrAnybody,)
    operations: ClassVar = {"GET": Operation(id="metrics", summary="How everything stands", scope="observe")}

    def get(self, request: Request) -> HttpResponse:
        memory_url = settings.ENV.memory_redis_url
        has_memory = memory_url is not None and _answers(memory_url)
        of_caller = _of_everything if self.caller.rules_all else _of_streams
        families = of_caller(self.caller, has_memory=has_memory)
        return HttpResponse(text_of(families), content_type=CONTENT_TYPE)


def _of_streams(caller: Caller, *, has_memory: bool) -> list[Family]:
    now_ms = int(time.time() * 1000)
    return [
        *stream_families(streams_monitored(caller, in_memory=has_memory), now_ms=now_ms),
        *group_families(groups_monitored(caller, in_memory=has_memory)),
    ]


def _of_everything(caller: Caller, *, has_memory: bool) -> list[Family]:
    """While the store is away, what can be known without it: that it is away, and which processes run."""
    env = settings.ENV
    stores = {"durable": _store(memory=False) if _answers(env.redis_url) else None}
    if env.memory_redis_url is not None:
        stores["memory"] = _store(memory=True) if has_memory else None
    known = [
        *store_families(stores),
        *process_families(processes.read(env.processes_file)),
        *history_families(selectors.runs_failing()),
    ]
    if stores["durable"] is None:
        return known
    of_streams = _of_streams(caller, has_memory=has_memory)
    traffic_now = traffic_families(store.log().run(traffic.total()))
    return [*known, *worker_families(selectors.sampling()), *traffic_now, *of_streams]


def _store(*, memory: bool) -> ServerState | None:
    try:
        return store.log().run(server.inspect(memory=memory))
    except LogError:
        return None


def _answers(url: str) -> bool:
    """Whether a server answers soon: a scrape must not wait for one that hangs as long as a request may."""
    try:
        resp.ping(url, timeout_s=SCRAPE_TIMEOUT_S)
    except resp.StoreError:
        return False
    return True
