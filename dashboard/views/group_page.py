"""One consumer group: how it stands, where it shall go, whether it delivers, and its end."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats
from dashboard.browse.message_rows import MessageRow
from dashboard.confirmations import ConfirmForm
from dashboard.groups.group_forms import LIKE, SHIFT, PauseForm, SeekForm, SeekNowForm
from dashboard.groups.group_rows import (
    GroupRow,
    PastSeek,
    SeekPreview,
    not_given_back,
    past_seek,
    skips_more,
)
from dashboard.groups.letting_go import LettingGo, letting_go
from dashboard.groups.member_rows import Members, members_of
from dashboard.groups.seek_effect import SeekEffect, effect_of
from dashboard.groups.seek_history import SeekHistoryForm, place_of
from dashboard.groups.what_if import WhatIfForm, outlook_of
from dashboard.live import rates
from dashboard.live.lag_chart import lag_chart_of
from dashboard.live.live_ranges import live_range_of
from dashboard.shown import Shown
from dashboard.views.door import console_action, console_page, is_part, shown_then
from dashboard.views.of_page import held_to_group
from dashboard.views.stream_page import stream_context
from streams import selectors
from streams.access import Caller, group_for
from streams.errors import Refusal
from streams.log.lag import wanted_by
from streams.models import Group
from streams.models.group import StartFrom
from streams.models.stream import Retention
from streams.selectors.events import EventsWanted
from streams.services.groups import (
    group_pause,
    group_resume,
    group_seek,
    offset_of_position,
)
from streams.services.replays import replay_demand, replay_for_group, wanted_of

SEEKS_LOOKED_AT = 20
"""The newest seeks, of which it is told what they dropped."""
MOST_COUNTED = 10_000
"""Offsets that are looked through, where a filter has each message read, to say what an Undo would do."""
UNSEEN = Shown()
LOOKED_FOR_S = 0.4
"""So long a preview looks for the message that comes next behind those that it counts."""


def preview_of(group: Group, form: SeekForm, *, caller: Caller, then: Shown = UNSEEN) -> SeekPreview | None:
    """What a valid form asks for would do; changes nothing. None where the other group is not there.

    Args:
        then: what was shown before of the messages that go for good, where it was.
    """
    wanted = _next_offset(group, form, caller=caller)
    if wanted is None:
        return None
    told = group_seek(group, next_offset=wanted, actor=caller.actor, dry_run=True)
    effect = _effect(group, told, _past_seeks(group, caller))
    low, high = sorted((told["from"], told["to"]))
    stream, keys = group.stream, group.filter_keys
    first = selectors.messages_from(stream, offset=low, stop=high, limit=1, keys=keys) if low < high else []
    last = selectors.messages_before(stream, offset=high, start=low, limit=1, keys=keys) if first else []
    following = first if told["to"] == low else []
    is_searched = True
    if not following:
        # Behind what was counted the stream may be long, and the filter may let next to nothing through.
        found = selectors.messages_found(
            stream, start=high, limit=1, wanted=wanted_by(keys), seconds=LOOKED_FOR_S
        )
        following, is_searched = found.messages, bool(found.messages) or found.rest is None
    return SeekPreview(
        told["from"],
        told["to"],
        told["messages"],
        told["skipped"],
        next(map(MessageRow, following), None),
        next(map(MessageRow, first), None),
        next(map(MessageRow, last), None),
        _gone(group, form),
        is_searched,
        effect.words,
        _letting_go(group, to=told["to"], at_most=told["skipped"], then=then),
    )


def _gone(group: Group, form: SeekForm) -> selectors.Gone | None:
    """What does not come although it lies behind the place asked for: that may be older than the stream."""
    asked = form.cleaned_data
    return selectors.gone_behind(group, asked["position"], **asked.get("place", {}))


def _next_offset(group: Group, form: SeekForm, *, caller: Caller) -> int | None:
    asked = form.cleaned_data
    if asked["position"] == SHIFT:
        return max(0, selectors.group_view(group).state.delivered_offset + 1 + int(asked["by"]))
    if asked["position"] == LIKE:
        try:
            other = selectors.group_view(
                group_for(caller, group.stream.name, asked["at"].strip(), may="read")
            )
        except Refusal as refusal:
            form.add_error("at", refusal.message)
            return None
        return other.state.delivered_offset + 1
    return offset_of_position(group.stream, asked["position"], **asked["place"])


def _past_seeks(group: Group, caller: Caller) -> tuple[list[PastSeek], bool]:
    """The newest seeks that moved or dropped something, newest first, and whether there were no earlier ones."""
    wanted = EventsWanted(
        kind="group.sought", stream=group.stream.name, group=group.name, since=group.created_at
    )
    events = selectors.events_found(caller, wanted, limit=SEEKS_LOOKED_AT)
    seeks = [seek for seek in map(past_seek, events) if seek is not None]
    return seeks, len(events) < SEEKS_LOOKED_AT


def _effect(group: Group, told: dict[str, int], past: tuple[list[PastSeek], bool]) -> SeekEffect:
    """What a seek does that was looked at before it is done (``group_seek``)."""
    goes_back = told["to"] < told["from"]
    messages = told["messages"] - told["skipped"] if goes_back else told["messages"]
    seeks, has_all = past
    return effect_of(group, seeks, has_all=has_all, before=told["from"], after=told["to"], messages=messages)


def _letting_go(group: Group, *, to: int, at_most: int, then: Shown = UNSEEN) -> LettingGo | None:
    """What goes for good by a seek, before it is done; None where nothing does.

    Args:
        at_most: as many messages it skips; what is in flight may go, too.
    """
    found = selectors.let_go_by_seek(group, next_offset=to)
    if found is None:
        return None
    row = rates.rows([group.stream])[0]
    out = selectors.group_view(group).state.ack_pending
    return letting_go(
        group.stream,
        found,
        at_most=at_most + out,
        stored=row.messages or 0,
        arriving=row.arriving,
        then=then,
    )


@dataclass(frozen=True, slots=True)
class Undo:
    """What the Undo of the newest seek would do.

    Attributes:
        letting_go: messages that would go for good by it: it is looked at before it is done.
        is_lost: whether nothing is left of what the seek had skipped.
    """

    effect: SeekEffect
    letting_go: LettingGo | None = None
    is_lost: bool = False


def _undo(group: Group, past: tuple[list[PastSeek], bool], *, now: int, caller: Caller) -> Undo | None:
    """What the Undo of the newest seek would do; None where there is none."""
    seeks, has_all = past
    if not seeks or not seeks[0].moved:
        return None
    has_skipped = seeks[0].to > seeks[0].back_to
    back_to = offset_of_position(group.stream, StartFrom.OFFSET, offset=seeks[0].back_to)
    by_interest = back_to < now and group.stream.retention == Retention.INTEREST
    # What nobody wants any more since the seek is there only until the worker comes by.
    going = selectors.retention_preview(group.stream, {}) if by_interest else None
    if group.filter_keys and abs(now - back_to) > MOST_COUNTED:  # each one would have to be read
        effect = effect_of(group, seeks, has_all=has_all, before=now, after=back_to, messages=None)
        is_lost = has_skipped and going is not None and going.first_offset >= now
        return Undo(effect, _letting_go(group, to=back_to, at_most=abs(now - back_to)), is_lost)
    told = group_seek(group, next_offset=back_to, actor=caller.actor, dry_run=True)
    if going is not None:
        told["messages"] = max(told["skipped"], told["messages"] - going.messages)
    effect = _effect(group, told, past)
    is_lost = has_skipped and (not effect.moves or (going is not None and not effect.messages))
    return Undo(effect, _letting_go(group, to=told["to"], at_most=told["skipped"]), is_lost)


def _sought(group: Group, caller: Caller, *, now: int) -> dict[str, Any]:
    """The newest seek with what its Undo would do, and what earlier ones dropped and no later one has given back, as
    far as it is still stored; ``now`` is the offset that is next.
    """
    past = _past_seeks(group, caller)
    seeks, _all = past
    dropped = not_given_back(seeks)
    if dropped and not selectors.messages_from(
        group.stream, offset=dropped.oldest, stop=dropped.below, limit=1
    ):
        dropped = None
    return {
        "last_seek": seeks[0] if seeks else None,
        "undo": _undo(group, past, now=now, caller=caller),
        "not_given_back": dropped,
    }


@console_page
def group_page(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """The group's page; with a position in the query string it shows what a seek there would do."""
    found = group_for(caller, name, group, may="observe")
    if is_part(request):
        answer = render(
            request, "dashboard/parts/group_standing.html", {"stream": found.stream, **standing(found)}
        )
    else:
        # A preview shows the messages that it leads to.
        seek = SeekForm(request.GET if "position" in request.GET and caller.may("read") else None)
        preview = preview_of(found, seek, caller=caller) if seek.is_bound and seek.is_valid() else None
        context = page_context(request, caller, found) | _seek_context(seek, preview)
        is_wrong = seek.errors or context["what_if_form"].errors
        answer = render(request, "dashboard/stream/group.html", context, status=422 if is_wrong else 200)
    answer["Vary"] = "HX-Request"
    return answer


def _seek_context(form: SeekForm, preview: SeekPreview | None) -> dict[str, Any]:
    going = preview.letting_go if preview else None
    return {
        "seek_form": form,
        "preview": preview,
        "confirm": ConfirmForm(phrase=going.phrase if going else ""),
    }


def standing(group: Group) -> dict[str, Any]:
    """How a group stands: what the part that moves needs."""
    view = selectors.group_view(group)
    return {"shown": GroupRow(view), "members": members_of(view)}


def page_context(request: HttpRequest, caller: Caller, group: Group) -> dict[str, Any]:
    """Everything on a group's page, with forms that nobody has filled in."""
    stands, now = standing(group), timezone.now()
    asked = live_range_of(request.GET, now=now)
    lag_chart = lag_chart_of(caller, stands["shown"].view, asked, now=now)
    sought: dict[str, Any] = {}
    if caller.may("read"):
        sought = _sought(group, caller, now=stands["shown"].state.delivered_offset + 1)
    else:
        lag_chart = replace(lag_chart, turns=[])
    return (
        stream_context(request, caller, group.stream.name, tab="groups", may="observe")
        | stands
        | sought
        | _what_if(request, stands["shown"], stands["members"])
        | {
            "group": group,
            "lag_chart": lag_chart,
            "seek_form": SeekForm(),
            "preview": None,
            "pause_form": PauseForm(),
            "may_manage": caller.may("manage"),
            "may_read": caller.may("read"),
        }
    )


def _what_if(request: HttpRequest, shown: GroupRow, members: Members) -> dict[str, Any]:
    """Of a group with a backlog, or where a rate was asked for."""
    form = WhatIfForm(request.GET if "acks" in request.GET else None)
    asked = form.cleaned_data["acks"] if form.is_bound and form.is_valid() else None
    found = outlook_of(shown, [row.member for row in members.rows], asked=asked)
    is_shown = found is not None and (found.backlog or form.is_bound)
    return {"what_if": found if is_shown else None, "what_if_form": form}


@console_action
@held_to_group
def seek(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Go where the preview went. Were more skipped by now than it said, it is shown again instead."""
    found = group_for(caller, name, group, may="manage")
    form = SeekNowForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was moved: choose a position, then confirm the preview."))
        return redirect("dashboard:group", name=name, group=group)
    wanted = form.cleaned_data["next_offset"]
    gone = SeekHistoryForm(request.POST).gone(found)
    told = group_seek(found, next_offset=wanted, actor=caller.actor, dry_run=True)
    if skips_more(seen_from=form.cleaned_data["seen_from"], now_from=told["from"], to=told["to"]):
        messages.warning(
            request,
            _("Nothing was moved: the group has moved since the preview; this is what it would do now."),
        )
        query = urlencode(place_of(gone, wanted))
        return redirect(f"{resolve_url('dashboard:group', name=name, group=group)}?{query}")
    then = shown_then(request)
    going = _letting_go(found, to=told["to"], at_most=told["skipped"], then=then)
    if going is not None:
        confirm = ConfirmForm(request.POST, phrase=going.phrase)
        has_grown = going.has_grown(then)
        if has_grown or not confirm.is_valid():
            return _asked_again(request, caller, found, told["to"], then, None if has_grown else confirm)
    if gone is not None:
        try:
            replay_demand(caller, stream=name)
        except Refusal as refusal:
            messages.error(request, refusal.message)
            return redirect("dashboard:group", name=name, group=group)
    effect = _effect(found, told, _past_seeks(found, caller))
    told = group_seek(found, next_offset=wanted, actor=caller.actor)
    figures = {field: formats.count(value) for field, value in told.items()}
    said = [_("The next offset is %(to)s; it was %(from)s.")]
    if told["to"] < told["from"]:
        said.append(effect.words)
    if told["to"] >= told["from"] or told["skipped"]:
        said.append(_("%(skipped)s were skipped."))
    if going is not None:
        said.append(_removed(going))
    if gone is not None:
        replay = replay_for_group(caller, stream=name, group=group, wanted=wanted_of(gone, starts=True))
        figures["replay"] = str(replay.pk)
        said.append(_("Replay %(replay)s delivers what is in the history: see the History tab."))
    messages.success(request, " ".join(str(each) for each in said) % figures, extra_tags="sought")
    return redirect("dashboard:group", name=name, group=group)


def _asked_again(
    request: HttpRequest, caller: Caller, group: Group, to: int, then: Shown, confirm: ConfirmForm | None
) -> HttpResponse:
    """The page with what a seek would remove; ``confirm``: what was typed, None where more would go than was shown."""
    form = SeekForm({"position": StartFrom.OFFSET, "at": str(to)})
    preview = preview_of(group, form, caller=caller, then=then) if form.is_valid() else None
    context = page_context(request, caller, group) | _seek_context(form, preview)
    context |= {"unmoved": "more" if then.at_ms else "first"} if confirm is None else {"confirm": confirm}
    return render(request, "dashboard/stream/group.html", context, status=409 if confirm is None else 422)


def _removed(going: LettingGo) -> str:
    count = going.told.messages
    if not going.told.is_complete:
        return _("At least %(count)s messages are removed: no group wants them any more.") % {
            "count": formats.count(count)
        }
    said = ngettext(
        "%(count)s message is removed: no group wants it any more.",
        "%(count)s messages are removed: no group wants them any more.",
        count,
    )
    return said % {"count": formats.count(count)}


@console_action
@held_to_group
def pause(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Deliver nothing for a while, or until it is resumed."""
    found = group_for(caller, name, group, may="manage")
    form = PauseForm(request.POST)
    if not form.is_valid():
        context = page_context(request, caller, found) | {"pause_form": form}
        return render(request, "dashboard/stream/group.html", context, status=422)
    group_pause(found, until=form.cleaned_data["until"], actor=caller.actor)
    messages.success(request, _("Group %(name)s is paused.") % {"name": group})
    return redirect("dashboard:group", name=name, group=group)


@console_action
@held_to_group
def resume(request: HttpRequest, caller: Caller, name: str, group: str) -> HttpResponse:
    """Deliver again."""
    found = group_for(caller, name, group, may="manage")
    group_resume(found, actor=caller.actor)
    messages.success(request, _("Group %(name)s was resumed.") % {"name": group})
    return redirect("dashboard:group", name=name, group=group)
