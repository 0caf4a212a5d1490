"""What every tab of a stream's page shows: its header and its tabs."""

from dataclasses import replace
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dashboard.live import rates
from dashboard.quantities import number_of
from dashboard.views.door import base_url
from streams import selectors
from streams.access import Caller, stream_for
from streams.models import Stream

# id, address, label, the right it needs
TABS = (
    ("messages", "dashboard:stream_messages", _("Messages"), "observe"),
    ("groups", "dashboard:stream_groups", _("Groups"), "observe"),
    ("publish", "dashboard:stream_publish", _("Publish"), "read"),
    ("rates", "dashboard:stream_rates", _("Rates"), "observe"),
    ("retention", "dashboard:stream_retention", _("Retention"), "observe"),
    ("history", "dashboard:stream_history", _("History"), "read"),
    ("activity", "dashboard:stream_activity", _("Activity"), "read"),
    ("settings", "dashboard:stream_settings", _("Settings"), "read"),
)


REMOVALS_SHOWN = 3
"""On the page; what is older is folded away below them."""


def standing(stream: Stream, *, with_groups: bool = False) -> dict[str, Any]:
    """How a stream stands and where it is going; ``with_groups`` also where its groups are."""
    row = rates.rows([stream])[0]
    is_there = row.view.is_reachable
    outlook = selectors.retention_outlook(stream, {}, with_groups=with_groups) if is_there else None
    return {"row": row, "outlook": outlook}


def stream_context(
    request: HttpRequest, caller: Caller, name: str, *, tab: str, may: str = "read"
) -> dict[str, Any]:
    """The context of a tab; raises the access door's refusals.

    Args:
        may: the right that the page needs; to whom may only observe it shows nothing of what messages hold.
    """
    stream = stream_for(caller, name, may=may)
    stands = standing(stream, with_groups=tab == "retention")
    stands["row"] = replace(stands["row"], worst=selectors.worst_groups([stream]).get(stream.pk))
    # A removal names the keys that it was of.
    may_look = stands["row"].view.is_reachable and caller.may("read")
    removals = selectors.removals_of(stream) if may_look else []
    return stands | {
        "section": "streams",
        "caller": caller,
        "stream": stream,
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
