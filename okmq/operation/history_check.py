"""The history held against itself, without Spark: its log, and what the ends of its Parquet files say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import ArrowException, parquet

from okmq.env import Env
from okmq.operation.kept_history import batches, ends_of
from streams.log.fsck import Finding

OFFSET = "offset"


@dataclass(frozen=True, kw_only=True)
class KeptHistory:
    """What one look saw.

    Attributes:
        ends: internal id → the last offset that it has; None where there is no history on this machine.
    """

    ends: Mapping[str, int] | None
    findings: tuple[Finding, ...]


def kept_history(env: Env) -> KeptHistory:
    """Hold the history against itself: its log is whole, and each file is there with what the log says of it.

    Only the ends of the Parquet files are read. A run may put files in the place of others meanwhile: what is found is
    looked at a second time by who asks.

    Raises:
        OSError, ValueError: its log cannot be read.
    """
    held = batches(env)
    if not held:
        return KeptHistory(ends=None, findings=())
    found = [*_log_findings(held), *_file_findings(Path(env.history_url), held)]
    return KeptHistory(ends=ends_of(held), findings=tuple(found))


def _log_findings(held: list[dict[str, Any]]) -> Iterator[Finding]:
    numbers = {batch["number"] for batch in held}
    lacking = sorted(set(range(1, max(numbers) + 1)) - numbers)
    if lacking:
        yield _told("", "lacks", f"the history's log lacks batch {lacking[0]} of {max(numbers)}")
    ends: dict[str, int] = {}
    for batch in held:
        for stream_id, start in batch["start"].items():
            if start < ends.get(stream_id, 0):
                number = batch["number"]
                sentence = (
                    f"batch {number} of the history begins above {start}, and {ends[stream_id]} was in it"
                )
                yield _told(stream_id, f"begins {number}", sentence)
        ends |= batch["end"]


def _file_findings(folder: Path, held: list[dict[str, Any]]) -> Iterator[Finding]:
    removed = {path for batch in held for path in batch.get("removed", ())}
    for batch in held:
        for file in batch["files"]:
            if file["path"] in removed:
                continue
            wrong = _wrong_in(folder / file["path"], file)
            if wrong:
                yield _told(
                    file["stream_id"], f"file {file['path']}", f"the history's file {file['path']} {wrong}"
                )


def _wrong_in(path: Path, said: Mapping[str, Any]) -> str:
    """What is wrong with a file by what its end says; empty: nothing."""
    try:
        held = parquet.read_metadata(path)
    except FileNotFoundError:
        return "is not there"
    except (OSError, ArrowException) as error:
        return f"cannot be read: {str(error).splitlines()[0]}"
    if held.num_rows != said["messages"]:
        return f"holds {held.num_rows} messages, not {said['messages']}"
    column = held.schema.names.index(OFFSET)
    told = [held.row_group(n).column(column).statistics for n in range(held.num_row_groups)]
    if not told or not all(each is not None and each.has_min_max for each in told):
        return ""
    first, last = min(each.min for each in told), max(each.max for each in told)
    if (first, last) != (said["first"], said["last"]):
        return f"holds offsets {first} to {last}, not {said['first']} to {said['last']}"
    return ""


def _told(stream_id: str, what: str, sentence: str) -> Finding:
    return Finding(stream_id=stream_id, what=f"history: {what}", sentence=sentence)
