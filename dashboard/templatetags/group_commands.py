"""The pages of consumer groups as commands to copy."""

import json
from collections.abc import Sequence
from typing import Any

from django import template

from dashboard.groups.desk_forms import DeskForm, SettleForm
from dashboard.groups.group_rows import GroupRow
from dashboard.templatetags.commands import asked, call, change_call, held
from streams.models import Group

register = template.Library()

DELETIONS_SHOWN = STREAMS_SHOWN = 20

GROUP_SETTINGS = (
    *("description", "ack", "ack_wait", "max_deliver", "backoff", "max_ack_pending"),
    *("filter_keys", "inactive_after", "ordered_by_key"),
)
"""What of a group may change at any time."""


def _groups(base_url: str, stream: str) -> str:
    return f"{base_url}/api/v1/streams/{stream}/groups/"


@register.simple_tag
def first_group_commands(base_url: str, stream: str) -> str:
    """Make a group, and fetch with it."""
    create = call(_groups(base_url, stream), body='{"name": "billing"}')
    return f"{create}\n\n{fetch_command(base_url, stream, 'billing')}"


@register.simple_tag
def fetch_command(base_url: str, stream: str, group: str) -> str:
    """Fetch with a group."""
    return call(f"{_groups(base_url, stream)}{group}/fetch", body='{"limit": 10, "wait": 5}')


@register.simple_tag
def groups_command(base_url: str, stream: str) -> str:
    """The groups of a stream, from the API."""
    return call(_groups(base_url, stream))


@register.simple_tag
def all_groups_command(base_url: str, rows: Sequence[GroupRow]) -> str:
    """The groups of the streams that a page of groups shows, of the first twenty, from the API."""
    streams = list(dict.fromkeys(row.group.stream.name for row in rows))[:STREAMS_SHOWN]
    return "\n\n".join(groups_command(base_url, each) for each in streams) or call(
        f"{base_url}/api/v1/streams/"
    )


@register.simple_tag
def group_command(base_url: str, stream: str, group: str) -> str:
    """One group, from the API."""
    return call(f"{_groups(base_url, stream)}{group}")


@register.simple_tag
def letters_list_command(base_url: str, stream: str, group: str, after: int, newest_first: bool) -> str:
    """A page of a group's dead letters, from the API, which does not look into reasons."""
    order = ("order", "newest" if newest_first else None)
    return call(asked(f"{_groups(base_url, stream)}{group}/dead-letters/", order, ("after", after or None)))


@register.simple_tag
def pending_command(base_url: str, stream: str, group: str, desk: DeskForm, after: int) -> str:
    """What a group has in flight, as the desk filters it."""
    wanted = () if desk.errors else desk.cleaned_data.items()
    return call(asked(f"{_groups(base_url, stream)}{group}/pending", *wanted, ("after", after or None)))


@register.simple_tag
def settle_command(base_url: str, stream: str, group: str, form: SettleForm, offsets: Sequence[int]) -> str:
    """What the desk is about to do to these, by the API."""
    what, delay, reason = (form.cleaned_data[name] for name in ("what", "delay", "reason"))
    body: dict[str, Any] = {"offsets": list(offsets)}
    if what == "nack" and delay:
        body["delay"] = delay
    if what == "term" and reason:
        body["reason"] = reason
    return call(f"{_groups(base_url, stream)}{group}/{what}", body=json.dumps(body))


@register.simple_tag
def letter_command(base_url: str, stream: str, group: str, offset: int) -> str:
    """One dead letter."""
    return call(f"{_groups(base_url, stream)}{group}/dead-letters/?after={offset - 1}&limit=1")


@register.simple_tag
def letter_replay_command(base_url: str, stream: str, group: str, offset: int) -> str:
    """One dead letter, delivered again."""
    return letters_command(base_url, stream, group, "replay", [offset])


@register.simple_tag
def letters_command(base_url: str, stream: str, group: str, deed: str, offsets: Sequence[int]) -> str:
    """What is about to be done to these dead letters, by the API, which deletes one at a time: the first twenty."""
    letters = f"{_groups(base_url, stream)}{group}/dead-letters"
    if deed == "replay":
        return call(f"{letters}/replay", body=json.dumps({"offsets": list(offsets)}))
    return "\n\n".join(
        call(f"{letters}/?offset={offset}", method="-X DELETE ") for offset in offsets[:DELETIONS_SHOWN]
    )


@register.simple_tag
def group_change_command(base_url: str, stream: str, group: Group) -> str:
    """What settings of a group would take away, and they saved: as they are."""
    path, settings = f"{_groups(base_url, stream)}{group.name}", held(group, GROUP_SETTINGS)
    return f"{call(f'{path}/preview', body=json.dumps(settings))}\n\n{change_call(path, settings)}"


@register.simple_tag
def seek_command(base_url: str, stream: str, group: str, preview: Any) -> str:
    """The seek that a preview shows, by the API; below it the same with what the history can bring."""
    address = f"{_groups(base_url, stream)}{group}/seek"
    bodies: list[dict[str, Any]] = [{"position": "offset", "offset": preview.after}]
    if (gone := preview.gone) and gone.in_history:
        place: dict[str, Any] = {"position": "offset", "offset": gone.from_offset}
        if gone.since is not None:
            place = {"position": "timestamp", "timestamp": gone.since.isoformat()}
        bodies.append({**place, "history": True})
    return "\n\n".join(call(address, body=json.dumps(body)) for body in bodies)
