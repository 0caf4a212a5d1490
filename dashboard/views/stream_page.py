"""What every tab of a stream's page shows: its header and its tabs."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dashboard.live import rates
from dashboard.quantities import number_of
from dashboard.views.door import base_url
from streams import selectors
from streams.access import Caller, stream_for

TABS = (
    ("messages", "dashboard:stream_messages", _("Messages")),
    ("groups", "dashboard:stream_groups", _("Groups")),
    ("publish", "dashboard:stream_publish", _("Publish")),
    ("rates", "dashboard:stream_rates", _("Rates")),
    ("retention", "dashboard:stream_retention", _("Retention")),
    ("history", "dashboard:stream_history", _("History")),
    ("activity", "dashboard:stream_activity", _("Activity")),
    ("settings", "dashboard:stream_settings", _("Settings")),
)


REMOVALS_SHOWN = 3
"""On the page; what is older is folded away below them."""


def stream_context(request: HttpRequest, caller: Caller, name: str, *, tab: str) -> dict[str, Any]:
    """The context of a tab; raises the access door's refusals."""
    stream = stream_for(caller, name, may="read")
    row = rates.rows([stream])[0]
    is_there = row.view.is_reachable
    removals = selectors.removals_of(stream) if is_there else []
    return {
        "section": "streams",
        "caller": caller,
        "stream": stream,
        "row": row,
        "outlook": selectors.retention_outlook(stream, {}, with_groups=tab == "retention")
        if is_there
        else None,
        "tab": tab,
        "tabs": TABS,
        "base_url": base_url(request),
        "removals": removals[::-1],
        "removals_shown": f":{REMOVALS_SHOWN}",
        "removals_folded": f"{REMOVALS_SHOWN}:",
        "removal_cut": number_of(request.GET.get("left"), default=0, low=0, high=2**53),
        "undo_s": settings.ENV.undo_s,
        "may_undo": caller.may("manage"),
        "may_end": caller.may("admin"),
    }
