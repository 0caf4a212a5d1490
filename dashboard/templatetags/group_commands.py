"""The pages of consumer groups as commands to copy."""

import json
from typing import Any

from django import template

from dashboard.templatetags.shell import call

register = template.Library()


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
def group_command(base_url: str, stream: str, group: str) -> str:
    """One group, and its dead letters, from the API."""
    path = f"{_groups(base_url, stream)}{group}"
    return f"{call(path)}\n\n{call(f'{path}/dead-letters/')}"


@register.simple_tag
def pending_command(base_url: str, stream: str, group: str) -> str:
    """What a group has in flight, and one of them given back."""
    path = f"{_groups(base_url, stream)}{group}"
    back = call(f"{path}/nack", body='{"offsets": [7], "delay": 30}')
    return f"{call(f'{path}/pending?deliveries=2')}\n\n{back}"


@register.simple_tag
def group_change_command(base_url: str, stream: str, group: str) -> str:
    """Change a setting of a group."""
    return call(f"{_groups(base_url, stream)}{group}", method="-X PATCH ", body='{"ack_wait": 60}')


@register.simple_tag
def seek_command(base_url: str, stream: str, group: str, preview: Any) -> str:
    """The seek that a preview shows, by the API."""
    body = json.dumps({"position": "offset", "offset": preview.after})
    return call(f"{_groups(base_url, stream)}{group}/seek", body=body)
