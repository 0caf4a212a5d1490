"""What every page behind the login has in common: who is calling, and how a refusal looks."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlencode, urlsplit, urlunsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import Resolver404, resolve
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from dashboard.quantities import number_of
from dashboard.shown import Shown
from dashboard.snapshot import saving
from dashboard.views import whereabouts
from dashboard.zones import zone_of
from streams.access import MUST_CHANGE, Caller, caller_for_session, stream_for
from streams.errors import Refusal, refusal_of
from streams.log.errors import LogError
from streams.models.stream import Storage

P = ParamSpec("P")
Page = Callable[Concatenate[HttpRequest, Caller, P], HttpResponseBase]
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]

logger = logging.getLogger(__name__)


def console_page(view: Page[P]) -> View[P]:
    """A page for someone who is logged in; the view is given the caller. Refusals become pages.

    None of it stays in a cache: the browser's may be there for others, too. With ``?snapshot=1`` it is saved as a file.
    """
    return _behind(view, "GET")


def console_form(view: Page[P]) -> View[P]:
    """As ``console_page``, of a page that is sent back to its own address."""
    return _behind(view, "GET", "POST")


def console_action(view: Page[P]) -> View[P]:
    """As ``console_page``, of what is only done, and is no page of its own."""
    return _behind(view, "POST")


def _behind(view: Page[P], *methods: str) -> View[P]:
    @require_http_methods([*methods, "HEAD"] if "GET" in methods else methods)
    @wraps(view)
    def unstored(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        method = request.method
        if method == "HEAD":  # what a GET would say, of which the server sends no body
            request.method = "GET"
        answer = guarded(request, *args, **kwargs)
        request.method = method
        patch_cache_control(answer, private=True, no_store=True)
        return answer

    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return to_login(request)
        if request.session.get(MUST_CHANGE):
            return _elsewhere(request, "dashboard:password")
        try:
            caller = caller_for_session(request.user, request.session, address=address_of(request))
            if (sent_on := _moved(request, caller)) is not None:
                return sent_on
            request.caller = caller  # type: ignore[attr-defined]  # for the frame around the page
            with timezone.override(zone_of(request)):
                is_saved = request.method == "GET" and not is_part(request) and saving.is_asked(request)
                answer = view(request, caller, *args, **kwargs)
                return saving.saved(request, answer, caller=caller) if is_saved else answer
        except Refusal as refusal:
            return refused(request, refusal)
        except LogError as error:
            logger.warning("A page was refused by the log.", extra={"path": request.path}, exc_info=error)
            return refused(request, refusal_of(error))

    vars(unstored)["methods"] = methods
    return unstored


def _moved(request: HttpRequest, caller: Caller) -> HttpResponse | None:
    """Where somebody is sent whose workspace was deleted or is not theirs any more: what they sent was for that one.

    None where they go on, as on a page that says that it is of another workspace.
    """
    before, now = whereabouts.left(request, caller.workspace), caller.workspace
    is_sent = request.method != "GET"
    if not before:
        return None
    if wants_json(request):
        refusal = Refusal("workspace_not_found", _("You no longer belong to the workspace of this page."))
        return JsonResponse(refusal.body(), status=refusal.status) if is_sent else None
    if is_part(request) and not is_sent:
        return _elsewhere(request, "dashboard:overview")  # which says it
    whereabouts.go_to(request, now)
    told = _("You are now in the workspace %(now)s: %(before)s was deleted, or you no longer belong to it.")
    told %= {"now": now.name, "before": before}
    if not is_sent:
        messages.warning(request, told)
        return None
    undone = _("Nothing was done.")
    messages.warning(request, f"{told} {undone}")
    return _elsewhere(request, "dashboard:overview")


def address_of(request: HttpRequest) -> str:
    """Where the request came from: what a proxy says is taken by the server, of trusted proxies only."""
    return str(request.META.get("REMOTE_ADDR") or "")


def refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """The page for a refusal, with its status; the same sentence as the API's."""
    if wants_json(request):
        return JsonResponse(refusal.body(), status=refusal.status)
    is_in_memory = refusal.status == 503 and _is_in_memory(request)
    context = {"refusal": refusal, "is_in_memory": is_in_memory}
    answer = render(request, "dashboard/refused.html", context, status=refusal.status)
    for name, value in refusal.headers.items():
        answer[name] = value
    return answer


def _is_in_memory(request: HttpRequest) -> bool:
    """Whether a page is about a stream in memory, whose messages a restart of its server takes."""
    match, caller = request.resolver_match, getattr(request, "caller", None)
    if caller is None or match is None or not match.route.startswith("streams/<"):
        return False
    with suppress(DatabaseError):  # it may be what is away
        return stream_for(caller, match.kwargs["name"], may="observe").storage == Storage.MEMORY
    return False


def wants_json(request: HttpRequest) -> bool:
    return request.headers.get("Accept") == "application/json"


def is_part(request: HttpRequest) -> bool:
    """Whether htmx (or our own script) asks for the moving part of a page only."""
    return request.headers.get("HX-Request") == "true"


def asked_next(request: HttpRequest) -> str:
    """Where a form, or its preview's address, asks to go on to: a path of this host from the root; otherwise nothing.

    Django would take a word for the name of a view, and a browser for a path from the page it is on.
    """
    wanted = request.POST.get("next") or request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return wanted if is_ours and wanted.startswith("/") else ""


def safe_next(request: HttpRequest, *, default: str) -> str:
    """The path to go on to: what is asked for, or else the view's own."""
    return asked_next(request) or resolve_url(default)


def base_url(request: HttpRequest) -> str:
    """Where this server is, for commands to copy: ``http://127.0.0.1:8000``."""
    return request.build_absolute_uri("/").rstrip("/")


def to_login(request: HttpRequest) -> HttpResponse:
    """The way of somebody who is not logged in, and back to the page that they were on."""
    if wants_json(request):
        return JsonResponse(Refusal("unauthorized", "Log in again.").body(), status=401)
    page = _page_of(request)
    if request.method not in {"GET", "HEAD"}:
        messages.warning(request, _("You were logged out; nothing was done."))
    if is_part(request):
        answer = HttpResponse(status=401)
        answer["HX-Redirect"] = f"{resolve_url('dashboard:login')}?{urlencode({'next': page})}"
        return answer
    return redirect_to_login(page)


def _page_of(request: HttpRequest) -> str:
    """Where to go on after the login: a page that can be looked at, which an action's own address may not be."""
    if request.method in {"GET", "HEAD"} and not is_part(request):
        return request.get_full_path()
    told = request.headers.get("HX-Current-URL") or request.headers.get("Referer", "")
    if url_has_allowed_host_and_scheme(
        told, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        parts = urlsplit(told)
        if _is_looked_at(parts.path):
            return urlunsplit(("", "", parts.path, parts.query, ""))
    name = request.resolver_match.kwargs.get("name") if request.resolver_match else None
    if name and request.path.startswith("/streams/"):
        return resolve_url("dashboard:stream_messages", name=name)
    return resolve_url("dashboard:overview")


def _is_looked_at(path: str) -> bool:
    """Whether a path is a page's, not only an action's."""
    try:
        view = resolve(path).func
    except Resolver404:
        return False
    return "GET" in getattr(view, "methods", ("GET",))


def _elsewhere(request: HttpRequest, page: str) -> HttpResponse:
    if is_part(request):
        answer = HttpResponse(status=401)
        answer["HX-Redirect"] = resolve_url(page)
        return answer
    return redirect(page)


def shown_then(request: HttpRequest, *, what: str = "") -> Shown:
    """What the form of ``parts/shown.html`` says that its page had shown, of messages if not told otherwise."""
    sent = (request.POST.get(f"seen_{what}{name}") for name in ("messages", "most", "at"))
    return Shown(*(number_of(each, default=0, low=0, high=2**62) for each in sent))


def losing_then(request: HttpRequest) -> dict[str, int]:
    """What the page said that each group would lose at most: ``5:billing``."""
    told = (each.partition(":") for each in request.POST.getlist("losing"))
    return {group: number_of(unread, default=0, low=0, high=2**62) for unread, _, group in told}
