"""Forms are held to the stream or group of their page: another one may have its name by the time one is sent."""

from collections.abc import Callable
from functools import wraps

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _

from streams.access import Caller, group_for
from streams.models import Stream

ANOTHER = _(
    "Nothing was done: the stream on your page has been deleted, and this is another one with the same name."
)
ANOTHER_GROUP = _(
    "Nothing was done: the group on your page has been deleted, and this is another one with the same name."
)

GroupPage = Callable[[HttpRequest, Caller, str, str], HttpResponse]


def is_of_page(request: HttpRequest, stream: Stream) -> bool:
    """Whether a form was filled in for this stream, and not for one that had its name before."""
    return request.POST.get("of", stream.stream_id) == stream.stream_id


def held_to_group(view: GroupPage) -> GroupPage:
    """A form that was filled in for a group that had the name before does nothing; its present one says so."""

    @wraps(view)
    def held(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
        meant = request.POST.get("of")
        if meant is not None and meant != str(group_for(caller, name, group, may="observe").pk):
            messages.error(request, ANOTHER_GROUP)
            return redirect("dashboard:group", name=name, group=group)
        return view(request, caller, name, group)

    return held
