"""The pages as calls to copy; those of consumer groups stand in ``group_commands``."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from django import template
from django.conf import settings

from dashboard import formats
from dashboard.alert_forms import NewRuleForm
from dashboard.browse.browse_form import BrowseForm
from dashboard.browse.windows import PAGE_SIZE, Window
from dashboard.configuration import ConfigurationForm
from dashboard.forms import PublishForm, StreamForm
from dashboard.history.erasure_forms import ErasureForm
from dashboard.history.history_ranges import CUSTOM, Asked
from dashboard.lists.bulk import BulkForm, labels_with
from dashboard.lists.event_rows import PAGE_SIZE as EVENTS_SHOWN
from dashboard.lists.event_rows import EventRow
from dashboard.lists.stream_list import ListQuery
from dashboard.live.live_ranges import LiveRange
from dashboard.people_forms import PersonForm
from dashboard.retention.purge_form import NEWEST, OFFSET, TIME, PurgeEffect, PurgeForm
from dashboard.stream_rows import StreamRow
from streams.models import AlertRule, Stream, Workspace
from streams.models.policy import POLICY_LIMITS
from streams.selectors import EventsWanted, PersonView
from streams.services.workspaces import settings_of

register = template.Library()

MOST_READ = 10_000
MOST_STREAMS = 1000
"""What the API gives of messages and of streams in one answer at most."""

RAW = ("headers", "body")
"""What of a message is JSON already, with every digit."""

LONGEST_BODY = 20_000
"""Characters of a body that are shown a second and a third time, as a call."""


def call(path: str, *, method: str = "", body: str = "") -> str:
    """A curl call of a path with a token, ready to paste."""
    parts = [f"curl {method}{shlex.quote(path)}", '  -H "Authorization: Bearer $OKMQ_TOKEN"']
    if body:
        parts += ["  -H 'Content-Type: application/json'", f"  -d {shlex.quote(body)}"]
    return " \\\n".join(parts)


def asked(path: str, *parameters: tuple[str, Any]) -> str:
    """A path with a query string; what is empty is left out."""
    given = [(name, value) for name, value in parameters if value not in ("", None)]
    return f"{path}?{urlencode(given, quote_via=quote, safe=':*')}" if given else path


def _undo() -> tuple[str, str]:
    """What a removal asks for where it can be undone."""
    return "undo", "true" if settings.ENV.undo_s else ""


def _iso(moment: datetime | None) -> str:
    return "" if moment is None else formats.iso(int(moment.timestamp() * 1000))


@register.simple_tag
def create_command(base_url: str, name: str) -> str:
    """Make a stream."""
    return call(f"{base_url}/api/v1/streams/", body=json.dumps({"name": name}))


@register.simple_tag
def create_form_command(base_url: str, form: StreamForm) -> str:
    """Make the stream that a form holds; without a name that is refused."""
    chosen = form.cleaned_data if form.is_bound else {}
    given = {field: value for field, value in chosen.items() if value not in (None, "")}
    body = json.dumps({**given, "name": str(form["name"].value() or "")})
    return call(f"{base_url}/api/v1/streams/", body=body)


@register.simple_tag
def publish_command(base_url: str, name: str) -> str:
    """Publish one message."""
    return call(
        f"{base_url}/api/v1/streams/{name}/messages", body='{"id": "order-1", "body": {"hello": "world"}}'
    )


@register.simple_tag
def publish_form_command(base_url: str, name: str, form: PublishForm) -> str:
    """The message that a form holds, published; nothing where its body is long."""
    chosen = {field: str(form[field].value() or "") for field in form.fields}
    if len(chosen["body"]) > LONGEST_BODY:
        return ""
    # A line's end and the indent after it stand between JSON's tokens only, and calls end at an empty line.
    message: dict[str, Any] = {
        field: msgspec.Raw(re.sub(r"[\r\n][ \t\r\n]*", " ", chosen[field]).encode())
        if field in RAW
        else chosen[field]
        for field in ("id", "key", "headers", "body")
        if chosen[field] or field == "id"
    }
    body = msgspec.json.encode(message).decode("utf-8", "replace")
    return call(f"{base_url}/api/v1/streams/{name}/messages", body=body)


@register.simple_tag
def publish_many_command(base_url: str, name: str) -> str:
    """Publish several messages, all or none; without ids they are refused."""
    body = '[{"id": "", "body": {}}, {"id": "", "body": {}}]'
    return call(f"{base_url}/api/v1/streams/{name}/messages", body=body)


@register.simple_tag
def browse_command(base_url: str, name: str, window: Window, form: BrowseForm) -> str:
    """What the page of messages shows, from the API, which knows keys: of other filters the messages among which they
    looked."""
    return call(
        asked(f"{base_url}/api/v1/streams/{name}/messages", *_place(window, form), ("key", _key(form)))
    )


def _key(form: BrowseForm) -> str:
    return str(form.cleaned_data.get("key", "")) if not form.errors else ""


def _place(window: Window, form: BrowseForm) -> tuple[tuple[str, Any], ...]:
    """Where a call begins and how much it reads, to come to the messages of a page."""
    chosen = {} if form.errors else form.cleaned_data
    start, search = chosen.get("start"), window.search
    if search and search.message_id:
        return ("id", search.message_id), ("limit", PAGE_SIZE)
    if not window.rows:
        if search and "before" in search.resume:
            return ("before", search.resume["before"]), ("limit", PAGE_SIZE)
        begin = ("from", _iso(chosen["time"])) if start == "time" else ("offset", chosen.get("offset", 1))
        return begin, ("before", window.stop), ("limit", PAGE_SIZE)
    limit = len(window.rows) if search is None or search.done else PAGE_SIZE
    if chosen.get("header") or chosen.get("match"):
        limit = min(window.highest - window.lowest + 1, MOST_READ)
        return ("offset", window.lowest), ("before", window.highest + 1), ("limit", limit)
    if start == "newest":
        return ("before", window.highest + 1), ("limit", limit)
    return ("offset", window.lowest), ("limit", limit)


@register.simple_tag
def tail_command(base_url: str, followed: Sequence[StreamRow], form: BrowseForm) -> str:
    """What comes from now on, as server-sent events; each stream is a call of its own."""
    paths = [f"{base_url}/api/v1/streams/{row.name}/tail" for row in followed]
    return "\n\n".join(call(asked(path, ("key", _key(form))), method="-N ") for path in paths)


@register.simple_tag
def message_command(base_url: str, name: str, offset: int) -> str:
    """One message, from the API."""
    return call(f"{base_url}/api/v1/streams/{name}/messages/{offset}")


@register.simple_tag
def message_groups_command(base_url: str, name: str, offset: int) -> str:
    """How the groups stand to one message, from the API."""
    return call(f"{base_url}/api/v1/streams/{name}/messages/{offset}/groups/")


@register.simple_tag
def api_command(base_url: str, path: str) -> str:
    """A path of the API, read."""
    return call(f"{base_url}/api/v1/{path}")


@register.simple_tag
def search_command(base_url: str, question: str) -> str:
    """The streams whose names hold what is looked for."""
    return call(asked(f"{base_url}/api/v1/streams/", ("name", question)))


@register.simple_tag
def streams_command(base_url: str, query: ListQuery) -> str:
    """The streams that a list shows; the API has them by name, so in another order and further on all that match."""
    is_first = query.sort == "name" and query.number == 1
    labels = [("label", f"{label}:{value}") for label, value in query.labels]
    limit = ("limit", query.size if is_first else MOST_STREAMS)
    name = ("name_regex" if query.regex else "name", query.name)
    return call(asked(f"{base_url}/api/v1/streams/", name, *labels, limit))


STREAM_SETTINGS = ("description", "labels", "keys", "max_message_bytes", "dedup_window", "archive")
"""What the page of a stream's settings can change back and forth."""


def held(of: Any, fields: Iterable[str]) -> dict[str, Any]:
    """Settings as they are: a call that sends them changes nothing before somebody edits it."""
    return {field: getattr(of, field) for field in fields}


def change_call(path: str, changes: Mapping[str, Any]) -> str:
    """A call that changes settings."""
    return call(path, method="-X PATCH ", body=json.dumps(changes))


@register.simple_tag
def stream_command(base_url: str, stream: Stream) -> str:
    """A stream, and its settings saved as they are."""
    path = f"{base_url}/api/v1/streams/{stream.name}"
    return f"{call(path)}\n\n{change_call(path, held(stream, STREAM_SETTINGS))}"


@register.simple_tag
def retention_command(base_url: str, stream: Stream, effect: Any = None) -> str:
    """What limits would do, and they saved: those that a form asks for, or the stream's own."""
    path = f"{base_url}/api/v1/streams/{stream.name}"
    if effect and effect.changes:
        limits, changes = effect.limits, effect.changes
    else:
        limits = held(stream, POLICY_LIMITS)
        changes = {"policy": stream.policy} if stream.policy else limits
    if "policy" in changes:
        changes = {**changes, "policy": changes["policy"] or None}  # as the API says none
    preview = call(f"{path}/retention/preview", body=json.dumps(limits))
    return f"{preview}\n\n{change_call(path, changes)}"


@register.simple_tag
def deed_command(base_url: str, deed: str, rows: Sequence[StreamRow], form: BulkForm) -> str:
    """What is done to several streams, done to each; of labels with the one that the form holds."""

    def said(row: StreamRow) -> str:
        path = f"{base_url}/api/v1/streams/{row.name}"
        if deed == "label":
            label, value = (str(form[field].value() or "") for field in ("label", "value"))
            return change_call(path, {"labels": labels_with(row.stream.labels, label=label, value=value)})
        return call(asked(f"{path}/messages", _undo()) if deed == "purge" else path, method="-X DELETE ")

    return "\n\n".join(said(row) for row in rows)


@register.simple_tag
def purge_command(base_url: str, name: str, form: PurgeForm, effect: PurgeEffect | None = None) -> str:
    """What a form would purge, and it purged, for a while where it can be; the stream while the form is wrong."""
    if not effect:
        return call(f"{base_url}/api/v1/streams/{name}")
    wanted = form.cleaned_data["wanted"]
    path = f"{base_url}/api/v1/streams/{name}"
    purge = (
        ("offset", effect.below if form.cleaned_data["what"] in (OFFSET, TIME) else None),
        ("keep", wanted if form.cleaned_data["what"] == NEWEST else None),
        ("key", effect.key),
        _undo(),
    )
    preview = call(asked(f"{path}/purge/preview", *purge), method="-X POST ")
    return f"{preview}\n\n{call(asked(f'{path}/messages', *purge), method='-X DELETE ')}"


@register.simple_tag
def message_delete_command(base_url: str, name: str, offset: int) -> str:
    """One message deleted, to be brought back for a while where that can be."""
    return call(asked(f"{base_url}/api/v1/streams/{name}/messages/{offset}", _undo()), method="-X DELETE ")


@register.simple_tag
def erasure_command(base_url: str, name: str, form: ErasureForm) -> str:
    """What an erasure that a form holds would do, and it asked for; and the newest of the workspace."""
    path = f"{base_url}/api/v1/analytics/erasures"
    if not form.is_bound or form.errors:
        return call(path)
    wanted = {"stream": name, **form.wanted()}
    preview = call(path, body=json.dumps({**wanted, "dry_run": True}))
    return "\n\n".join([preview, call(path, body=json.dumps(wanted)), call(path)])


@register.simple_tag
def removal_end_command(base_url: str, name: str, number: int) -> str:
    """What can come back, and one removal made final with those before it."""
    path = f"{base_url}/api/v1/streams/{name}/removals/"
    return f"{call(path)}\n\n{call(f'{path}{number}', method='-X DELETE ')}"


RULE_SETTINGS = (
    *("stream", "group", "watch", "statuses", "limit", "clear", "for_seconds"),
    *("webhook_url", "webhook_format", "email", "most_messages", "most_minutes", "enabled"),
)
"""What a call sends of an alert rule; a mute has its time."""


@register.simple_tag
def rule_command(base_url: str, rule: AlertRule, may_manage: bool) -> str:
    """An alert rule, it saved as it is, and a test to whom it tells; without its webhook for who may not see that."""
    path = f"{base_url}/api/v1/alerts/rules/{rule.name}"
    shown = [name for name in RULE_SETTINGS if may_manage or name != "webhook_url"]
    calls = [call(path), change_call(path, held(rule, shown))]
    return "\n\n".join([*calls, *([call(f"{path}/test", method="-X POST ")] if rule.channels else [])])


@register.simple_tag
def rule_delete_command(base_url: str, rule: AlertRule) -> str:
    """An alert rule deleted, with its alerts."""
    return call(f"{base_url}/api/v1/alerts/rules/{rule.name}", method="-X DELETE ")


@register.simple_tag
def stream_history_command(base_url: str, name: str, shown: Asked) -> str:
    """What a stream's history holds of a range, from the API; of one that ends now without an end."""
    until = shown.until if shown.range == CUSTOM else None
    path = f"{base_url}/api/v1/streams/{name}/history"
    return call(asked(path, ("step", shown.step), ("from", _iso(shown.since)), ("to", _iso(until))))


@register.simple_tag
def stream_rates_command(base_url: str, name: str, asked: LiveRange) -> str:
    """How a stream moved in the last hours, from the API."""
    wanted = asked.id if asked.is_live else "6h"
    return call(f"{base_url}/api/v1/streams/{name}/metrics?range={wanted}")


@register.simple_tag
def query_command(base_url: str, sql: str | None) -> str:
    """A question in SQL."""
    return call(f"{base_url}/api/v1/analytics/query", body=json.dumps({"sql": sql or ""}))


@register.simple_tag
def root_command(base_url: str, path: str) -> str:
    """A path outside the versioned API, read."""
    return call(f"{base_url}/{path}")


@register.simple_tag
def people_command(base_url: str, form: PersonForm) -> str:
    """The people of the workspace, and the one more that the form holds; without a name that is refused."""
    people = f"{base_url}/api/v1/users/"
    added: dict[str, Any] = {field: str(form[field].value() or "") for field in ("name", "role")}
    if form.is_bound and "streams" not in form.errors and form.cleaned_data["streams"]:
        added["streams"] = form.cleaned_data["streams"]
    return f"{call(people)}\n\n{call(people, body=json.dumps(added))}"


@register.simple_tag
def person_command(base_url: str, person: PersonView, what: str, role: str, streams: Sequence[str]) -> str:
    """A person given a role ("role"), streams ("streams"), a one-time password ("password"), or removed ("remove")."""
    at = f"{base_url}/api/v1/users/{quote(person.name)}"
    if what == "password":
        return call(asked(f"{at}/password", ("workspace", person.workspace)), method="-X POST ")
    path = asked(at, ("workspace", person.workspace))
    if what == "remove":
        return call(path, method="-X DELETE ")
    return change_call(path, {"role": role} if what == "role" else {"streams": list(streams)})


@register.simple_tag
def workspace_command(base_url: str, workspace: Workspace, form: Any) -> str:
    """What a plan would do, and it saved with the rate limit: as a form asks for, or as they are."""
    path = f"{base_url}/api/v1/workspaces/{workspace.name}"
    settings = form.cleaned_data if form.is_bound and form.is_valid() else settings_of(workspace)
    preview = call(f"{path}/plan/preview", body=json.dumps({"plan": settings["plan"]}))
    return f"{preview}\n\n{change_call(path, settings)}"


@register.simple_tag
def configuration_command(base_url: str, form: ConfigurationForm) -> str:
    """The configuration as a file, and what the file that a form holds would change; without that where it is long."""
    path = f"{base_url}/api/v1/configuration"
    held = {"file": str(form["text"].value() or ""), "prune": bool(form["prune"].value()), "dry_run": True}
    if not held["file"] or len(str(held["file"])) > LONGEST_BODY:
        return call(path)
    return f"{call(path)}\n\n{call(f'{path}/apply', body=json.dumps(held))}"


@register.simple_tag
def events_command(base_url: str, wanted: EventsWanted, rows: Sequence[EventRow]) -> str:
    """The events that a page shows, from the API, which tells them oldest first: the newest, or those from a row on."""
    is_newest = wanted.before is None and wanted.after is None
    return call(
        asked(
            f"{base_url}/api/v1/events",
            *((name, getattr(wanted, name)) for name in ("stream", "group", "kind", "actor", "about")),
            ("from", _iso(wanted.since)),
            ("to", _iso(wanted.until)),
            ("after", None if is_newest or not rows else rows[-1].event.id - 1),
            ("limit", EVENTS_SHOWN if is_newest or not rows else len(rows)),
        )
    )


@register.simple_tag
def alert_command(base_url: str, form: NewRuleForm) -> str:
    """What fires, the rules, and the one more that the form holds; without a name that is refused."""
    alerts = f"{base_url}/api/v1/alerts/"
    if form.is_bound and form.is_valid():
        rule = {"name": form.cleaned_data["name"], **form.settings()}
    else:
        rule = {field: form[field].value() or "" for field in ("name", "stream", "group", "watch")}
    body = json.dumps({field: value for field, value in rule.items() if value not in (None, [])})
    return "\n\n".join([call(alerts), call(f"{alerts}rules/"), call(f"{alerts}rules/", body=body)])
