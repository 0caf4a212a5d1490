"""Publishing many messages by hand: pasted lines, or a file of them."""

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.publish.publish_many_form import LARGEST_LINE, PublishManyForm
from dashboard.publish.publishing_many import Lines, Told, publish_lines
from dashboard.quantities import number_of
from dashboard.views.door import console_form, is_part
from dashboard.views.stream_page import stream_context
from dashboard.views.stream_publish import fresh_id
from streams.access import Caller, stream_for


@console_form
def publish_many(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The form. The page's script sends it part by part, with how far it came, and is answered with that alone."""
    told: Told | None = None
    form = PublishManyForm(initial={"ids": fresh_id()})
    if request.method == "POST":
        stream = stream_for(caller, name, may="publish")
        form = PublishManyForm(request.POST, request.FILES)
        if form.is_valid():
            told = publish_lines(stream, _lines(form), how=_how(form), told=_told_before(request))
            if not is_part(request):
                form = PublishManyForm(initial=_following(form, told))
    context: dict[str, Any] = {"told": told, "form": form, "next_ids": fresh_id()}
    if is_part(request):
        return render(request, "dashboard/parts/published.html", {"name": name, **context})
    status = 422 if form.errors or (told and told.wrong) else 200
    context |= stream_context(request, caller, name, tab="publish")
    context |= {"name": name, "may_publish": caller.may("publish")}
    return render(request, "dashboard/stream/publish_many.html", context, status=status)


def _lines(form: PublishManyForm) -> Iterable[bytes]:
    """What was sent, line by line; of a file never all of it at once."""
    file: Iterable[bytes] | None = form.cleaned_data["file"]
    pasted: str = form.cleaned_data["lines"]
    # Not the lines of a text: a JSON string may hold what a text takes for the end of one.
    return file or pasted.encode("utf-8", "surrogatepass").splitlines()


def _how(form: PublishManyForm) -> Lines:
    asked = form.cleaned_data
    return Lines(begin=asked["begin"], as_bodies=asked["each"] == "body", prefix=asked["ids"])


def _told_before(request: HttpRequest) -> Told:
    """How far the parts before this one came, as their answer said."""

    def number(name: str, default: int = 0) -> int:
        return number_of(request.POST.get(f"so_far_{name}"), default=default, low=0, high=LARGEST_LINE)

    first, last = number("first"), number("last")
    return Told(
        line=max(1, number("line", 1)),
        stored=number("stored"),
        known=number("known"),
        first=first or None,
        last=last or None,
    )


def _following(form: PublishManyForm, told: Told) -> dict[str, object]:
    """What the form holds next: after a wrong line it goes on there, with ids that nothing has."""
    asked = form.cleaned_data
    kept = asked["keep"] or bool(told.wrong)
    return {
        "each": asked["each"],
        "keep": asked["keep"],
        "lines": asked["lines"] if kept else "",
        "begin": told.line if told.wrong else 1,
        "ids": asked["ids"] if told.is_unknown else fresh_id(),
    }
