"""The configuration of a workspace as it is: whole, to compare, and as short as it can be written."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import yaml
from django.db import models

from streams.api.declared.checking import VERSION
from streams.api.group_objects import FIELDS
from streams.models import POLICY_LIMITS, AlertRule, Group, Policy, Stream, Workspace
from streams.services import alerts, groups, policies, streams_told

State = dict[tuple[str, ...], dict[str, Any]]
"""Every object's settings by ``("policy", name)``, ``("stream", name)``, ``("group", stream, name)`` or
``("alert rule", name)``."""

OF_RULES = tuple(
    name
    for name in alerts.SETTINGS
    if name not in {"muted_until", "mute_reason", "webhook_url", "webhook_format"}
)
"""What a file says of an alert rule. A mute is of a moment, and a webhook's address may hold a secret."""


def state_of(workspace: Workspace) -> State:
    """Everything that a file may speak of."""
    found: State = {}
    for policy in Policy.objects.filter(workspace=workspace).order_by("name"):
        found["policy", policy.name] = policies.settings_of(policy)
    for stream in Stream.objects.filter(workspace=workspace, internal=False).order_by("name"):
        found["stream", stream.name] = streams_told.settings_of(stream) | {"policy": stream.policy or None}
    every = Group.objects.filter(stream__workspace=workspace, stream__internal=False).select_related("stream")
    for group in every.order_by("stream__name", "name"):
        found["group", group.stream.name, group.name] = {
            FIELDS.get(name, name): _written(value) for name, value in groups.settings_of(group).items()
        }
    for rule in AlertRule.objects.filter(workspace=workspace).order_by("name"):
        found["alert rule", rule.name] = {name: _plain(getattr(rule, name)) for name in OF_RULES}
    return found


def exported(workspace: Workspace) -> str:
    """The workspace's configuration as a file that makes the same one elsewhere; what is as by default is left out."""
    state = state_of(workspace)
    document: dict[str, Any] = {"okmq": VERSION, "workspace": workspace.name}
    document |= {"policies": {}, "streams": {}, "alert_rules": {}}
    for path, settings in state.items():
        short = {
            name: value for name, value in settings.items() if value != default_of(path, name, workspace)
        }
        match path:
            case ("policy", name):
                document["policies"][name] = short
            case ("alert rule", name):
                document["alert_rules"][name] = short
            case ("stream", name):
                if settings["policy"]:
                    short = {field: value for field, value in short.items() if field not in POLICY_LIMITS}
                    if settings["sealed"]:  # it keeps the limits that its policy had then
                        short |= {field: settings[field] for field in POLICY_LIMITS}
                document["streams"][name] = short
            case (_, stream, name):
                document["streams"][stream].setdefault("groups", {})[name] = short
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)
    told = AlertRule.objects.filter(workspace=workspace).exclude(webhook_url="").order_by("name")
    names = ", ".join(told.values_list("name", flat=True))
    return f"# The webhooks of these alert rules are not in this file: {names}.\n{text}" if names else text


def default_of(path: tuple[str, ...], name: str, workspace: Workspace) -> Any:
    """What a setting is when nothing is said."""
    if path[0] == "stream":
        if name == "policy":
            return None
        if name in workspace.cap.bounds:
            return workspace.cap.bounds[name].default
        return model_default(Stream, name)
    if path[0] == "group":
        names = {shown: held for held, shown in FIELDS.items()}
        return model_default(Group, names.get(name, name))
    if path[0] == "alert rule":
        return model_default(AlertRule, name)
    return model_default(Policy, name)


def model_default(model: type[models.Model], name: str) -> Any:
    """What a column is when nothing is said."""
    column = model._meta.get_field(name)
    assert isinstance(column, models.Field)
    return column.get_default()


def told(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they are shown."""
    return {name: _written(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    """A whole number without the point that a column of fractions gives it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
