"""Whether this process lives, and whether it can serve."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse

from streams import store
from streams.api.errors import answer, refused_method
from streams.errors import Refusal
from streams.log.client import one
from streams.log.errors import LogError

ALLOWED = ("GET", "HEAD")


def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    if request.method not in ALLOWED:
        return answer(refused_method(ALLOWED))
    return JsonResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})


def readyz(request: HttpRequest) -> JsonResponse:
    """Its stores answer too; 503 names those that do not."""
    if request.method not in ALLOWED:
        return answer(refused_method(ALLOWED))
    reasons = {}
    try:
        store.log().run(one(("PING",)))
    except LogError as error:
        reasons["log"] = f"The message store does not answer: {error}"
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        reasons["database"] = f"The database does not answer: {error}"
    if reasons:
        return answer(
            Refusal("store_unavailable", "Not ready: " + "; ".join(reasons.values()), reasons=reasons)
        )
    return JsonResponse(
        {"status": "ok", "checks": {"log": "ok", "database": "ok"}}, headers={"Cache-Control": "no-store"}
    )
