"""The answer that saves a page as a file."""

import re
from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.utils.text import slugify

from dashboard import formats
from dashboard.snapshot.frozen import frozen, styles, symbols
from streams.access import Caller

ASKED = "snapshot"
"""The parameter of the query string; the page itself does not know of it."""
LONGEST_NAME = 80


def is_asked(request: HttpRequest) -> bool:
    """Whether the page is to be saved; the parameter is taken away from it."""
    if ASKED not in request.GET:
        return False
    rest = request.GET.copy()
    del rest[ASKED]
    request.GET = QueryDict(rest.urlencode())
    request.META["QUERY_STRING"] = rest.urlencode()
    return True


def saved(request: HttpRequest, answer: HttpResponseBase, *, caller: Caller) -> HttpResponseBase:
    """A page as one file; what is no page (a refusal, a part, an export) stays as it is."""
    is_page = answer.status_code == 200 and answer.get("Content-Type", "").startswith("text/html")
    if not is_page or not isinstance(answer, HttpResponse):
        return answer
    address = request.build_absolute_uri()
    page = frozen(answer.content.decode(), address=address)
    now_ms = int(timezone.now().timestamp() * 1000)
    context: Mapping[str, object] = {
        "title": page.title.strip(),
        "address": address,
        "at": formats.moment(now_ms),
        "who": caller.actor.name,
        "workspace": caller.workspace.name,
        "style": mark_safe(f"<style>{styles()}</style>"),
        "icons": [mark_safe(symbols()[name]) for name in sorted(page.icons)],
        "kept": mark_safe(page.kept),
    }
    file = HttpResponse(render_to_string("dashboard/snapshot.html", context, request))
    name = slugify(re.sub(r"[^A-Za-z0-9.]+", "-", request.path))[:LONGEST_NAME] or "overview"
    stamp = formats.iso(now_ms)[:19].replace(":", "")
    file["Content-Disposition"] = f'attachment; filename="okmq-{name}-{stamp}Z.html"'
    return file
