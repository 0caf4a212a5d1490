"""Ranges of a stream's past that are published again: asked for, counted, then started, paused and ended."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from dashboard.history.replay_forms import ReplayForm
from dashboard.quantities import LARGEST, number_of
from dashboard.views.door import console_action, console_page, is_part
from streams import selectors
from streams.access import Caller, replay_for, stream_for
from streams.errors import Refusal
from streams.models import Replay, ReplayState, Stream
from streams.services.replays import (
    ENDED,
    STARTABLE,
    WORKING,
    replay_cancel,
    replay_pause,
    replay_request,
    replay_start,
)

SHOWN = 6
"""Replays of a page that have finished; those that have not are all shown, before them."""


def replays_context(request: HttpRequest, caller: Caller, stream: Stream) -> dict[str, Any]:
    """What the panel of replays needs beside its form: ``?replays_before`` and ``?replay`` are ids."""
    before = number_of(request.GET.get("replays_before"), default=0, low=0, high=LARGEST) or None
    unfinished = selectors.replays_unfinished(caller, stream=stream.name)
    finished, more = selectors.replays_finished(caller, stream=stream.name, before=before, limit=SHOWN)
    return {
        "replays": [
            {
                "replay": each,
                "may_start": each.state in STARTABLE,
                "may_pause": each.state == ReplayState.RUNNING,
                "may_end": each.state not in ENDED,
                "pushes_out": selectors.pushed_out_by(each),
            }
            for each in (*unfinished, *finished)
        ],
        "replays_before": before,
        "replays_older": finished[-1].pk if more else None,
        "opened_replay": number_of(request.GET.get("replay"), default=0, low=0, high=LARGEST),
        "is_replaying": any(each.state in WORKING for each in unfinished),
        "may_replay": caller.may("manage"),
    }


@console_page
def replays(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """The replays of a stream, for htmx: those that have not finished, and a page of those that have."""
    stream = stream_for(caller, name, may="read")
    if not is_part(request):
        return redirect("dashboard:stream_history", name=stream.name)
    return render(
        request,
        "dashboard/parts/replays.html",
        {"stream": stream, **replays_context(request, caller, stream)},
    )


def ask(request: HttpRequest, caller: Caller, stream: Stream, form: ReplayForm) -> bool:
    """Have what a form says counted; False, with the form's errors, where it cannot be."""
    if not form.is_valid():
        return False
    try:
        replay = replay_request(
            caller, source=stream.name, target=form.cleaned_data["target"], wanted=form.wanted()
        )
    except Refusal as refusal:
        form.add_error("target" if refusal.code in _OF_THE_TARGET else None, refusal.message)
        return False
    messages.success(
        request, _("Replay %(number)s is being counted; start it below.") % {"number": replay.pk}
    )
    return True


_OF_THE_TARGET = ("stream_not_found", "operation_denied")


@console_action
def change(request: HttpRequest, caller: Caller, name: str, replay_id: int, do: str) -> HttpResponse:
    """Start, pause or end a replay."""
    stream = stream_for(caller, name, may="manage")
    replay = replay_for(caller, replay_id, may="manage")
    try:
        _DEEDS[do](caller, replay)
    except Refusal as refusal:
        if refusal.code == "forbidden":
            raise
        messages.error(request, refusal.message)
    return redirect("dashboard:stream_history", name=stream.name)


def _start(caller: Caller, replay: Replay) -> None:
    """Start what the page offers to start: a second click does not start what is only being counted again."""
    if replay.state == ReplayState.COUNTING:
        raise Refusal("replay_state", "This replay is counting; it cannot be started.", state=replay.state)
    replay_start(caller, replay)


_DEEDS: dict[str, Callable[[Caller, Replay], None]] = {
    "start": _start,
    "pause": lambda caller, replay: replay_pause(replay, actor=caller.actor),
    "cancel": lambda caller, replay: replay_cancel(replay, actor=caller.actor),
}
