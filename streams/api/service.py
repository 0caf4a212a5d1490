"""Whether this process lives, and whether it can serve."""

import logging

from django.core.exceptions import SuspiciousOperation
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from rest_framework.exceptions import ValidationError

from streams import selectors
from streams.api import readiness
from streams.api.errors import answer, refusal_for, refused_method
from streams.api.queries import NothingAsked, asked
from streams.errors import Refusal
from streams.log.errors import LogError

log = logging.getLogger(__name__)

ALLOWED = ("GET", "HEAD")


def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    if refusal := _refused(request):
        return answer(refusal)
    return JsonResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})


def readyz(request: HttpRequest) -> JsonResponse:
    """Its stores answer too; 503 names those that do not, or that follow another server.

    A full message store still lets messages go, and without one node of a cluster, or the server of the streams in
    memory, the others can be served: that is told, and no reason for a 503. Nor is a worker that hangs, or a store that
    promises less than is configured, as each publish tells. A store that hangs is one that does not answer.
    """
    if refusal := _refused(request):
        return answer(refusal)
    durable, memory = readiness.found()
    reason = durable.reason or _lost()
    reasons = {"log": reason} if reason else {}
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        log.warning("Not ready: %s", error)
        reasons["database"] = "The database is not responding."
    if reasons:
        return answer(
            Refusal("store_unavailable", "Not ready. " + " ".join(reasons.values()), reasons=reasons)
        )
    checks = {"log": durable.log, "database": "ok", "worker": durable.worker}
    if memory is not None:
        checks["memory"] = memory.log
    status = "ok" if set(checks.values()) == {"ok"} else "degraded"
    return JsonResponse({"status": status, "checks": checks}, headers={"Cache-Control": "no-store"})


def _refused(request: HttpRequest) -> Refusal | None:
    """What is wrong with a question to a probe: it is only asked, and takes no parameters."""
    if request.method not in ALLOWED:
        return refused_method(ALLOWED)
    try:
        asked(request.GET, NothingAsked, text=request.META["QUERY_STRING"])
    except (ValidationError, SuspiciousOperation, Refusal) as error:
        return refusal_for(error)
    return None


def _lost() -> str:
    """What is wrong where the store was emptied: it cannot be told of anything before somebody decides."""
    try:
        if selectors.is_store_emptied():
            return "The message store was emptied: it has nothing of what it was told of (okmq_republish)."
    except DatabaseError:
        pass  # told with the database
    except LogError as error:
        log.warning("Not ready: %s", error)
        return readiness.AWAY
    return ""
