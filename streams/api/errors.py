"""Every answer that is not a success, in the one shape of both planes."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.exceptions import (
    BadRequest,
    DisallowedHost,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import IntegrityError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from streams.errors import Refusal, refusal_of
from streams.log.errors import LogError

log = logging.getLogger(__name__)


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's hook: the answer for whatever a view raised."""
    named = context["kwargs"]
    refusal = refusal_for(error, stream=str(named.get("name", "")), group=str(named.get("group", "")))
    if refusal is None:
        refusal = unexpected(error, context["request"])
    set_rollback()
    return Response(refusal.body(), status=refusal.status, headers=refusal.headers)


def refusal_for(error: Exception, *, stream: str = "", group: str = "") -> Refusal | None:
    """The refusal that an exception stands for; None when nobody foresaw it."""
    match error:
        case Refusal():
            return error
        case LogError():
            return refusal_of(error, stream=stream, group=group)
        case exceptions.ValidationError():
            return validation_refusal(error.get_full_details())
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return Refusal("unauthorized", "Send a token: Authorization: Bearer <token>.")
        case exceptions.PermissionDenied() | PermissionDenied():
            return Refusal("forbidden", "This is not allowed.")
        case exceptions.NotFound() | Http404():
            return nothing_here()
        case exceptions.UnsupportedMediaType():
            return Refusal("unsupported_media_type", "Send JSON, with content-type application/json.")
        case RequestDataTooBig():
            return Refusal("payload_too_large", "The body is too large.")
        case DisallowedHost():
            return Refusal("invalid_host", "This host name is not served here; see OKMQ_ALLOWED_HOSTS.")
        case SuspiciousOperation() | BadRequest() | UnreadablePostError() | exceptions.ParseError():
            return Refusal("validation_error", "The request cannot be read.", fields=[])
        case OperationalError() | InterfaceError():
            log.warning("The database does not answer: %s", error)
            return Refusal("store_unavailable", "The database is not responding; try again.")
        case IntegrityError():
            # Somebody took away what this call builds on, such as its workspace; asked again, it is told so.
            log.warning("Two calls crossed: %s", error)
            return Refusal("store_unavailable", "Something changed in the meantime; try again.")
        case _:
            return None


def unexpected(error: Exception, request: Any) -> Refusal:
    """The answer for a fault of ours: the log has the traceback, the caller the id to ask by."""
    refusal = internal_error(request)
    log.error(
        "A request failed.",
        exc_info=error,
        extra={**refusal.details, "method": request.method, "path": request.path},
    )
    return refusal


def internal_error(request: Any) -> Refusal:
    """500, with the id to ask by."""
    request_id = str(request.META.get("HTTP_X_REQUEST_ID", ""))
    reference = f" (request {request_id})" if request_id else ""
    return Refusal("internal_error", f"Something went wrong{reference}.", request_id=request_id)


def validation_refusal(found: Any) -> Refusal:
    """Refused fields, each with its sentences: DRF's full details in our shape."""
    errors = {str(field): sentences(detail) for field, detail in found.items()}
    first = next(iter(errors), "")
    return Refusal(
        "validation_error",
        f"{first}: {errors[first][0]}" if first else "The request is not valid.",
        fields=list(errors),
        errors=errors,
    )


def sentences(detail: Any) -> list[str]:
    """Every sentence in DRF's nested details."""
    if isinstance(detail, Mapping):
        if "message" in detail and "code" in detail:
            return [str(detail["message"])]
        return [sentence for each in detail.values() for sentence in sentences(each)]
    return [sentence for each in detail for sentence in sentences(each)]


def invalid(field: str, sentence: str) -> Refusal:
    """One refused field or parameter."""
    return Refusal("validation_error", f"{field}: {sentence}", fields=[field], errors={field: [sentence]})


def refused_method(allowed: Iterable[str]) -> Refusal:
    """405, with what is allowed."""
    methods = sorted(allowed)
    return Refusal(
        "method_not_allowed",
        f"This path takes {', '.join(methods)}.",
        headers={"Allow": ", ".join(methods)},
        allowed=methods,
    )


def nothing_here() -> Refusal:
    return Refusal("not_found", "There is nothing at this path.")


def answer(refusal: Refusal) -> JsonResponse:
    """A refusal as a plain Django response."""
    return JsonResponse(refusal.body(), status=refusal.status, headers=refusal.headers)


def not_found(request: HttpRequest) -> JsonResponse:
    """The view of every path under the API that is no path."""
    return answer(nothing_here())


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """What was refused before a view of the API was reached, such as another host name."""
    return answer(unreadable(exception))


def unreadable(exception: Exception) -> Refusal:
    """Why Django refused a request."""
    return refusal_for(exception) or Refusal("validation_error", "The request cannot be read.", fields=[])


def server_error(request: HttpRequest) -> HttpResponseBase:
    """A fault outside a view of the API, below its path; Django has logged it."""
    return answer(internal_error(request))


SERVICE = frozenset({"/healthz", "/readyz", "/metrics"})
"""What programs ask beside the API; answers are in its shape."""


def is_for_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")


def is_for_programs(request: HttpRequest) -> bool:
    """Whether it is for the API, or for what programs ask beside it."""
    return is_for_api(request) or request.path_info.rstrip("/") in SERVICE
