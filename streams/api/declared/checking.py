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
        "webhook_format": "It goes with the webhook: set it in the console or over the API.",
        "muted_until": MUTED,
        "mute_reason": MUTED,
    }

    webhook_url = webhook_format = muted_until = mute_reason = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class StreamDeclared:
    """A stream's settings and its groups', as the services take them."""

    settings: dict[str, Any]
    groups: dict[str, dict[str, Any]]


@dataclass(slots=True)
class Declared:
    """What a file says.

    Attributes:
        policies, streams, alert_rules: by name, without what is wrong; None where the file does not speak of them.
        faults: what is wrong so far, each path once.
    """

    document: Document
    workspace: str | None = None
    policies: dict[str, dict[str, Any]] | None = None
    streams: dict[str, StreamDeclared] | None = None
    alert_rules: dict[str, dict[str, Any]] | None = None
    faults: list[Fault] = field(default_factory=list)
    _wrong: set[Path] = field(default_factory=set)

    def refuse(self, path: Path, *sentences: str) -> bool:
        """Note what is wrong at a path; false where that, or what it stands in, is known to be wrong already."""
        if self.is_wrong(path):
            return False
        self._wrong.add(path)
        self.faults += [self.document.fault(path, sentence) for sentence in sentences]
        return True

    def is_wrong(self, path: Path) -> bool:
        """Whether something is wrong at this path, or with what it stands in as a whole."""
        return any(path[:length] in self._wrong for length in range(1, len(path) + 1))

    def is_wrong_below(self, path: Path) -> bool:
        """Whether something is wrong at this path, or in what stands there."""
        return self.is_wrong(path) or any(each[: len(path)] == path for each in self._wrong)


def check(document: Document) -> Declared:
    """What a document declares. What of it is wrong is in ``faults``, so that whoever applies it can tell that together
    with what the services refuse of the rest.

    Raises:
        Faulty: it says no version or workspace that is known; with everything that is wrong.
    """
    found, content = Declared(document), document.content
    for name in content:
        if name not in TOP:
            found.refuse((name,), f"Unknown here; expected {', '.join(TOP)}.")
    if content.get("okmq") != VERSION or isinstance(content.get("okmq"), bool):
        found.refuse(("okmq",), f"Expected the version of this format, okmq: {VERSION}.")
    workspace = content.get("workspace")
    if isinstance(workspace, str):
        found.workspace = workspace
    elif workspace is not None:
        found.refuse(("workspace",), "Expected a name.")
    if "policies" in content:
        found.policies = _checked_each(found, ("policies",), PolicyWanted)
    if "streams" in content:
        each = _section(found, ("streams",), content["streams"])
        found.streams = {
            name: stream
            for name, fields in each.items()
            if (stream := _stream(found, ("streams", name), fields)) is not None
        }
    if "alert_rules" in content:
        found.alert_rules = _checked_each(found, ("alert_rules",), RuleDeclared)
    if found.is_wrong(("okmq",)) or found.is_wrong(("workspace",)):
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
        found.refuse(("workspace",), sentence)
        raise Faulty(found.faults)
    return found


def _checked_each(found: Declared, path: Path, schema: type[Strict]) -> dict[str, dict[str, Any]]:
    """A section of plain objects, by name."""
    each = _section(found, path, found.document.content[path[0]])
    checked = {name: _checked(found, (*path, name), schema, fields) for name, fields in each.items()}
    return {name: fields for name, fields in checked.items() if fields is not None}


def _stream(found: Declared, path: Path, fields: Mapping[str, Any]) -> StreamDeclared | None:
    declared = _section(found, (*path, "groups"), fields.get("groups"))
    own = {name: value for name, value in fields.items() if name != "groups"}
    settings = _checked(found, path, stream_objects.StreamWanted, own)
    groups = {
        name: _checked(found, (*path, "groups", name), group_objects.GroupWanted, each)
        for name, each in declared.items()
    }
    if settings is None:
        return None
    return StreamDeclared(
        stream_objects.settings_in(settings),
        {name: group_objects.settings_in(each) for name, each in groups.items() if each is not None},
    )


def _section(found: Declared, path: Path, value: Any) -> dict[str, dict[str, Any]]:
    """A mapping of names to mappings; nothing stands for an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        found.refuse(path, "Expected a mapping of names.")
        return {}
    section = {}
    for name, each in value.items():
        if each is not None and not isinstance(each, dict):
            found.refuse((*path, name), "Expected a mapping of settings.")
        else:
            section[name] = each or {}
    return section


def _checked(
    found: Declared, path: Path, schema: type[Strict], fields: Mapping[str, Any]
) -> dict[str, Any] | None:
    """What is right of an object; None where that cannot be told, as its name is wrong."""
    if "name" in fields:
        found.refuse((*path, "name"), "The name goes before the colon.")
        fields = {name: value for name, value in fields.items() if name != "name"}
    try:
        checked: dict[str, Any] = schema().run_validation({**fields, "name": path[-1]})
    except serializers.ValidationError as error:
        refused = validation_refusal(error.get_full_details()).details["errors"]
        for name, sentences in refused.items():
            found.refuse(path if name == "name" else (*path, name), *sentences)
        if "name" in refused:
            return None
        right = {
            name: value for name, value in fields.items() if name in schema().fields and name not in refused
        }
        checked = schema(partial=True).run_validation({**right, "name": path[-1]})
    return {name: value for name, value in checked.items() if name != "name"}
