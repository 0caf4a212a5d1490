"""Checking a document against what can be set, as strictly as the API does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rest_framework import serializers

from streams.api import group_objects, stream_objects
from streams.api.alert_objects import RuleWanted
from streams.api.declared.reading import Document, Fault, Faulty, Path, read
from streams.api.errors import validation_refusal
from streams.api.fields import Strict
from streams.api.policies import PolicyWanted

VERSION = 1
MUTED = "A mute is temporary: set it in the console or over the API."
TOP = ("okmq", "workspace", "policies", "streams", "alert_rules")


class RuleDeclared(RuleWanted):
    """An alert rule: what it watches, and what it says by e-mail."""

    not_taken: ClassVar[Mapping[str, str]] = {
        "webhook_url": "Its address may hold a secret: set it in the console or over the API.",
        "muted_until": MUTED,
        "mute_reason": MUTED,
    }

    webhook_url = muted_until = mute_reason = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class StreamDeclared:
    """A stream's settings and its groups', as the services take them."""

    settings: dict[str, Any]
    groups: dict[str, dict[str, Any]]


@dataclass(slots=True)
class Declared:
    """What a file says.

    Attributes:
        policies, streams, alert_rules: by name; None where the file does not speak of them.
    """

    document: Document
    workspace: str | None = None
    policies: dict[str, dict[str, Any]] | None = None
    streams: dict[str, StreamDeclared] | None = None
    alert_rules: dict[str, dict[str, Any]] | None = None
    faults: list[Fault] = field(default_factory=list)


def check(document: Document) -> Declared:
    """What a document declares.

    Raises:
        Faulty: with everything that is wrong, each with its place.
    """
    found, content = Declared(document), document.content
    for name in content:
        if name not in TOP:
            found.faults.append(document.fault((name,), f"Unknown here; expected {', '.join(TOP)}."))
    if content.get("okmq") != VERSION or isinstance(content.get("okmq"), bool):
        found.faults.append(
            document.fault(("okmq",), f"Expected the version of this format, okmq: {VERSION}.")
        )
    workspace = content.get("workspace")
    if isinstance(workspace, str):
        found.workspace = workspace
    elif workspace is not None:
        found.faults.append(document.fault(("workspace",), "Expected a name."))
    if "policies" in content:
        each = _section(found, ("policies",), content["policies"])
        found.policies = {
            name: _checked(found, ("policies", name), PolicyWanted, fields) for name, fields in each.items()
        }
    if "streams" in content:
        each = _section(found, ("streams",), content["streams"])
        found.streams = {name: _stream(found, ("streams", name), fields) for name, fields in each.items()}
    if "alert_rules" in content:
        each = _section(found, ("alert_rules",), content["alert_rules"])
        found.alert_rules = {
            name: _checked(found, ("alert_rules", name), RuleDeclared, fields)
            for name, fields in each.items()
        }
    if found.faults:
        raise Faulty(found.faults)
    return found


def check_for(text: str, workspace: str) -> Declared:
    """What a text declares for the one workspace that its sender may change.

    Raises:
        Faulty: as ``read`` and ``check``, or it says that it is of another workspace: with everything in it that a file
            of another one does not declare, to apply it here by mistake could delete much.
    """
    found = check(read(text))
    if found.workspace not in (None, workspace):
        sentence = f"This is for another workspace; write {workspace}, or leave it out, to apply it here."
        raise Faulty([found.document.fault(("workspace",), sentence)])
    return found


def _stream(found: Declared, path: Path, fields: Mapping[str, Any]) -> StreamDeclared:
    groups = _section(found, (*path, "groups"), fields.get("groups"))
    own = {name: value for name, value in fields.items() if name != "groups"}
    return StreamDeclared(
        stream_objects.settings_in(_checked(found, path, stream_objects.StreamWanted, own)),
        {
            name: group_objects.settings_in(
                _checked(found, (*path, "groups", name), group_objects.GroupWanted, settings)
            )
            for name, settings in groups.items()
        },
    )


def _section(found: Declared, path: Path, value: Any) -> dict[str, dict[str, Any]]:
    """A mapping of names to mappings; nothing stands for an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        found.faults.append(found.document.fault(path, "Expected a mapping of names."))
        return {}
    section = {}
    for name, each in value.items():
        if each is not None and not isinstance(each, dict):
            found.faults.append(found.document.fault((*path, name), "Expected a mapping of settings."))
        else:
            section[name] = each or {}
    return section


def _checked(found: Declared, path: Path, schema: type[Strict], fields: Mapping[str, Any]) -> dict[str, Any]:
    if "name" in fields:
        found.faults.append(found.document.fault((*path, "name"), "The name goes before the colon."))
        return {}
    try:
        checked: dict[str, Any] = schema().run_validation({**fields, "name": path[-1]})
    except serializers.ValidationError as error:
        refused = validation_refusal(error.get_full_details()).details["errors"]
        for name, sentences in refused.items():
            at = path if name == "name" else (*path, name)
            found.faults += [found.document.fault(at, sentence) for sentence in sentences]
        return {}
    return {name: value for name, value in checked.items() if name != "name"}
