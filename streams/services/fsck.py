"""The log held against itself and against the database, and put right where what is right can be derived."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from streams import store
from streams.log import config, fsck, fsck_groups, fsck_parts, groups, keys, standing
from streams.log.errors import Damaged, StreamNotFound
from streams.log.fsck import Finding, Looked
from streams.log.fsck_parts import Part
from streams.models import Group, Stream, Token, Workspace
from streams.models.stream import Storage
from streams.services.fsck_positions import position_findings
from streams.services.group_repairs import groups_repair
from streams.services.groups import group_publish
from streams.services.installation import AnotherDatabase, another_database_refuse
from streams.services.shared_repairs import shared_repair
from streams.services.streams_told import registered, settings_of, streams_publish
from streams.services.tokens import grant_of, token_publish

ROUNDS = 6
"""What is put right may let more be seen: a stream that the log had forgotten was not looked at before."""

STREAM_UNTOLD, TOKEN_UNTOLD, GROUPS_UNTOLD = "told of", "token", "groups"
TOKEN_LEFT, NAME_LEFT = "token left", "name left"


@dataclass(kw_only=True)
class Report:
    """What was looked at and found; ``mended`` are the sentences of what was put right."""

    streams: int = 0
    messages: int = 0
    findings: list[Finding] = field(default_factory=list)
    mended: list[Finding] = field(default_factory=list)


def log_check(*, repair: bool = False) -> Report:
    """Look at every durable stream, its groups, and what the log was told by the database.

    What is found is looked at a second time: what a running product was just about has changed by then. Beside a
    database that knows none of the streams nothing else is looked at, and nothing put right.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    try:
        another_database_refuse()
    except AnotherDatabase as error:
        return Report(findings=[Finding(stream_id="", what="another database", sentence=str(error))])
    report, looked = _confirmed(None)
    mended: list[Finding] = []
    lost: list[Finding] = []
    for _ in range(ROUNDS if repair else 0):
        if not any(each.derivable or each.part for each in report.findings):
            break
        _mend(report.findings, looked)
        left, looked = _confirmed({each.stream_id for each in report.findings})
        still = {_named(each) for each in left.findings}
        mended += [each for each in report.findings if each.derivable and _named(each) not in still]
        # What cannot be derived is told, also where it was noted that it is so.
        lost += [each for each in report.findings if not each.derivable and _named(each) not in still]
        report.findings = left.findings
    report.findings = [*lost, *report.findings]
    report.mended = mended
    return report


def _confirmed(only: set[str] | None) -> tuple[Report, dict[str, Looked]]:
    """What two looks in a row found, and what the later one saw.

    Where the later one found something else, too, another look tells: who has just made again what was missing may
    have made it otherwise.
    """
    report, looked = _look(only)
    found = report.findings
    for _ in range(ROUNDS):
        suspected = set(map(_named, found))
        report.findings = []
        if not suspected:
            break
        again, looked = _look({each.stream_id for each in found})
        found = again.findings
        report.findings = [each for each in found if _named(each) in suspected]
        if len(report.findings) == len(found):
            break
    return report, looked


def _named(finding: Finding) -> tuple[str, str]:
    return finding.stream_id, finding.what


def _look(only: set[str] | None) -> tuple[Report, dict[str, Looked]]:
    """Everything, or only the streams of these internal ids (and what belongs to none)."""
    report, looked = Report(), {}
    for stream in Stream.objects.filter(storage=Storage.DURABLE).select_related("workspace"):
        if only is None or stream.stream_id in only:
            told = _look_at_stream(stream, report)
            if told is not None:
                looked[stream.stream_id] = told
    workspace_ids = list(Workspace.objects.values_list("pk", flat=True))
    shared = store.log().run(fsck_parts.look_shared(workspace_ids))
    report.findings += [_unreadable("", part) for part in shared]
    if not shared:
        report.findings += _registry()
    report.findings += _tokens()
    return report, looked


def _look_at_stream(stream: Stream, report: Report) -> Looked | None:
    report.streams += 1
    parts = store.log().run(fsck_parts.look(stream.stream_id))
    if parts:
        report.findings += [_unreadable(stream.stream_id, part) for part in parts]
        return None
    try:
        return _look_at_readable(stream, report)
    except Damaged as error:
        told = f"something of it cannot be read: {error}"
        report.findings.append(Finding(stream_id=stream.stream_id, what="damaged", sentence=told))
        return None


def _unreadable(stream_id: str, part: Part) -> Finding:
    lost = "" if part.is_derived else "; it does not follow from anything else"
    return Finding(
        stream_id=stream_id,
        what=part.what,
        sentence=f"{part.sentence}{lost}",
        derivable=part.is_derived,
        part=part,
    )


def _look_at_readable(stream: Stream, report: Report) -> Looked | None:
    log, stream_id = store.log(), stream.stream_id
    found = log.run(fsck.look(stream_id))
    is_lost = stream.offsets_reserved and log.run(config.lost([stream_id]))
    if found is None or is_lost or log.run(config.stream_settings(stream_id)) != _settings(stream):
        report.findings.append(_untold(stream))
    if found is None or is_lost:
        return None
    report.messages += found.messages
    report.findings += found.findings
    report.findings += log.run(fsck_groups.look(stream_id, last=found.right.counters.last))
    report.findings += _groups(stream)
    report.findings += position_findings(stream)
    return found


def _groups(stream: Stream) -> Iterator[Finding]:
    """Groups that only one of the two has, or the log with other settings."""
    log, stream_id = store.log(), stream.stream_id
    in_log = set(log.run(standing.names_of([stream_id])).get(stream_id, ()))
    rows = {group.name: group for group in Group.objects.filter(stream=stream)}
    for name in sorted(in_log | rows.keys()):
        told = ""
        if name not in rows:
            told = f"the group {name} is only in the log"
        elif name not in in_log:
            told = f"the group {name} is only in the database"
        else:
            held = log.run(fsck_groups.settings_of(stream_id, name))
            if held is not None and held != groups.published(rows[name].log_settings)[0]:
                told = f"the group {name} has other settings in the database"
        if told:
            yield Finding(stream_id=stream_id, what=f"{GROUPS_UNTOLD} {name}", sentence=told, derivable=True)


def _groups_mend(findings: Iterable[Finding]) -> None:
    """Tell the log again of groups that it has otherwise; one that lost its position begins behind what it has out."""
    suspects = {(each.stream_id, each.what) for each in findings}
    ids = {stream_id for stream_id, _ in suspects}
    for group in Group.objects.select_related("stream").filter(stream__stream_id__in=ids):
        stream_id, name = group.stream.stream_id, group.name
        if (stream_id, f"group {name}: {fsck_groups.NO_GROUP}") in suspects:
            _begin_again(group)
        elif (stream_id, f"{GROUPS_UNTOLD} {name}") in suspects:
            group_publish(group)


def _begin_again(group: Group) -> None:
    """Make a group whose position is lost: behind what it has out, also where the worker has made it meanwhile."""
    stream_id, log = group.stream.stream_id, store.log()
    begins = max(log.run(fsck_groups.position_of(stream_id, group.name)), group.begins_after)
    log.run(groups.group_publish(stream_id, group.name, group.log_settings, delivered=begins))


def _settings(stream: Stream) -> dict[str, object]:
    """The settings as ``config.stream_settings`` tells them."""
    wanted = settings_of(stream)
    told = {name: wanted.get(name) for name in config.SETTINGS}
    told = {name: 1 if value is True else value for name, value in told.items() if value not in (None, False)}
    return {**told, "keys": list(stream.keys)}


def _untold(stream: Stream) -> Finding:
    return Finding(
        stream_id=stream.stream_id,
        what=STREAM_UNTOLD,
        sentence=f"the log does not know the stream {stream.name} as the database has it",
        derivable=True,
    )


def _registry() -> Iterable[Finding]:
    """Streams that only the log has, names that lead elsewhere, keys of no stream."""
    log = store.log()
    held = log.run(config.streams())
    rows = {stream.stream_id: stream for stream in Stream.objects.select_related("workspace")}
    for each in held:
        if each.stream_id not in rows:
            yield Finding(
                stream_id=each.stream_id,
                what="no row",
                sentence=f"the stream {each.name} is in the log and not in the database; the worker takes it "
                "away",
            )
    names = {
        workspace_id: log.run(config.names_in(workspace_id))
        for workspace_id in {stream.workspace_id for stream in rows.values()}
    }
    patterns = {workspace_id: _patterns(workspace_id) for workspace_id in names}
    in_registry = {each.stream_id: each for each in held}
    for stream in rows.values():
        leads = names[stream.workspace_id].get(stream.name) == stream.stream_id
        accepts = patterns[stream.workspace_id].get(stream.name, []) == list(stream.keys)
        if in_registry.get(stream.stream_id) != registered(stream) or not (leads and accepts):
            yield _untold(stream)
    known = {(stream.workspace_id, stream.name) for stream in rows.values()}
    for workspace_id, led in names.items():
        for name in sorted(led.keys() | patterns[workspace_id].keys()):
            if (workspace_id, name) not in known:
                told = f"the log knows the name {name} in workspace {workspace_id}, and the database has no such stream"
                yield Finding(
                    stream_id="", what=f"{NAME_LEFT} {workspace_id} {name}", sentence=told, derivable=True
                )
    for stream_id in log.run(fsck_groups.strangers()):
        if stream_id not in rows and not keys.in_memory(stream_id):
            yield Finding(
                stream_id=stream_id, what="stranger", sentence="keys that belong to no stream", derivable=True
            )


def _patterns(workspace_id: int) -> dict[str, list[str]]:
    """Stream name → the key patterns that it accepts, of those that have any."""
    flat = store.log().run(config.patterns_in(workspace_id))
    return {flat[n].decode(): json.loads(flat[n + 1]) for n in range(0, len(flat), 2)}


def _tokens() -> Iterable[Finding]:
    # The log first: what it has by then was in the database before.
    held = store.log().run(fsck_groups.token_digests())
    for digest in sorted(held - set(Token.objects.values_list("digest", flat=True))):
        told = f"the log lets a token in that the database does not have (digest {digest[:12]}…)"
        yield Finding(stream_id="", what=f"{TOKEN_LEFT} {digest}", sentence=told, derivable=True)
    for token in Token.objects.select_related("workspace"):
        if _grant_held(token) != grant_of(token):
            yield Finding(
                stream_id="",
                what=f"{TOKEN_UNTOLD} {token.pk}",
                sentence=f"the log does not know the token {token.name} as the database has it",
                derivable=True,
            )


def _take_away(findings: Sequence[Finding]) -> None:
    """Take away what cannot be read, and make again at once what a later look would not miss."""
    log = store.log()
    for stream_id in sorted({each.stream_id for each in findings}):
        parts = [each.part for each in findings if each.stream_id == stream_id and each.part]
        if not stream_id:
            shared_repair()  # what the database tells is told again in the next round
        log.run(fsck_parts.take_away(parts))
        if not stream_id:
            continue
        for group in Group.objects.select_related("stream").filter(
            stream__stream_id=stream_id, name__in={part.group for part in parts}
        ):
            kinds = {(part.kind, part.name) for part in parts if part.group == group.name}
            # Where something else is damaged, or the stream is yet to be told of, the next round looks again.
            with suppress(Damaged, StreamNotFound):
                if kinds & fsck_groups.WITHOUT_IT_NONE:
                    _begin_again(group)
                settings = groups.published(group.log_settings)[0]
                log.run(fsck_groups.made_again(stream_id, group.name, kinds, settings=settings))
        with suppress(Damaged):  # something else; the next round looks again
            looked = log.run(fsck.look(stream_id, anew={part.kind for part in parts}))
            if looked is not None:
                log.run(fsck.mend(stream_id, looked))


def _grant_held(token: Token) -> config.TokenGrant | None:
    try:
        return store.log().run(config.token_grant(token.digest))
    except Damaged:
        return None  # told as one that the log does not know; it is written anew


def _mend(findings: Iterable[Finding], looked: dict[str, Looked]) -> None:
    log = store.log()
    findings = list(findings)
    _take_away([each for each in findings if each.part])
    derivable = [each for each in findings if each.derivable and not each.part]
    untold = {each.stream_id for each in derivable if each.what == STREAM_UNTOLD}
    streams_publish(list(Stream.objects.filter(stream_id__in=untold).select_related("workspace")))
    ids = sorted({each.stream_id for each in derivable if each.stream_id in looked})
    for stream_id in ids:
        if looked[stream_id].findings:
            log.run(fsck.mend(stream_id, looked[stream_id]))
        log.run(fsck_groups.mend(stream_id))
    _groups_mend(derivable)
    groups_repair(ids)
    for each in derivable:
        if each.what == "stranger":
            log.run(fsck_groups.strangers_remove(each.stream_id))
        if each.what.startswith(TOKEN_LEFT):
            log.run(config.token_remove(each.what.removeprefix(f"{TOKEN_LEFT} ")))
        if each.what.startswith(NAME_LEFT):
            workspace_id, name = each.what.removeprefix(f"{NAME_LEFT} ").split(" ", 1)
            log.run(config.name_remove(int(workspace_id), name))
    for token in Token.objects.select_related("workspace"):
        if f"{TOKEN_UNTOLD} {token.pk}" in {each.what for each in derivable}:
            token_publish(token)
