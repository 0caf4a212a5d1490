"""What every tab of a stream's page shows: its header and its tabs."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dashboard import rates
from dashboard.views.door import base_url
from streams.access import Caller, stream_for

TABS = (
    ("messages", "dashboard:stream_messages", _("Messages")),
    ("groups", "dashboard:stream_groups", _("Groups")),
    ("publish", "dashboard:stream_publish", _("Publish")),
    ("history", "dashboard:stream_history", _("History")),
    ("activity", "dashboard:stream_activity", _("Activity")),
    ("settings", "dashboard:stream_settings", _("Settings")),
)


def stream_context(request: HttpRequest, caller: Caller, name: str, *, tab: str) -> dict[str, Any]:
    """The context of a tab; raises the access door's refusals."""
    stream = stream_for(caller, name, may="read")
    return {
        "section": "streams",
        "caller": caller,
        "stream": stream,
        "row": rates.rows([stream])[0],
        "tab": tab,
        "tabs": TABS,
        "base_url": base_url(request),
    }
