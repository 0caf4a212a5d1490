"""Refusals of Django's own and faults of ours, in the house look; and the icon that browsers ask for by themselves."""

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseServerError
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.templatetags.static import static

from dashboard.views.door import wants_json
from streams.api import errors as api_errors


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token: too old, or sent by another site."""
    return render(request, "403_csrf.html", status=403)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Django's handler400: a form that is too large, another host name, what cannot be read.

    Nothing on the page asks who is logged in: what is refused may be the name of this server.
    """
    if api_errors.is_for_programs(request):
        return api_errors.bad_request(request, exception)
    refusal = api_errors.unreadable(exception)
    if wants_json(request):
        return api_errors.answer(refusal)
    context = {"refusal": refusal, "request_id": request.META.get("HTTP_X_REQUEST_ID", "")}
    return HttpResponse(render_to_string("400.html", context), status=refusal.status)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """A fault of ours: what to do, and the id under which the server's log has the details.

    Nothing on the page asks the database or the store, which may be what failed.
    """
    if api_errors.is_for_api(request):
        return api_errors.server_error(request)
    request_id = request.META.get("HTTP_X_REQUEST_ID", "")
    return HttpResponseServerError(render_to_string("500.html", {"request_id": request_id}))


def favicon(request: HttpRequest) -> HttpResponse:
    """The icon, for pages that cannot name it."""
    return redirect(static("img/mark.svg"))
