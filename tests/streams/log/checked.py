"""A stream and its groups as ``okmq_fsck`` looks at them, in short."""

from streams.log import fsck, fsck_groups, fsck_parts, keys
from streams.log.client import Log
from streams.log.fsck import Looked


def looked_at(log: Log, stream: str) -> Looked:
    found = log.run(fsck.look(stream))
    assert found is not None
    return found


def whats(log: Log, stream: str) -> list[str]:
    found = looked_at(log, stream)
    in_groups = log.run(fsck_groups.look(stream, last=found.right.counters.last))
    unreadable = log.run(fsck_parts.look(stream))
    return [*(each.what for each in unreadable), *(each.what for each in (*found.findings, *in_groups))]


def mended(log: Log, stream: str) -> bool:
    done = log.run(fsck.mend(stream, looked_at(log, stream)))
    log.run(fsck_groups.mend(stream))
    return done


def break_due(log: Log, stream: str) -> None:
    (first, *_) = log.client.execute_command("ZRANGE", keys.due(stream, "g"), 0, -1)
    log.client.execute_command("ZREM", keys.due(stream, "g"), first)
