"""The append-only file cut off at many places, as a crash of the machine leaves it: what a store makes of the rest."""

import asyncio
import itertools
import math
import os
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic

from okmq.instance import Broken, child, instance
from okmq.prove.apart import Apart, Say
from okmq.prove.faults import killed, killed_while_rewriting
from okmq.prove.history import History, Publish, Seen, checksum
from okmq.prove.kills import strike_all
from okmq.supervision import resp
from okmq.supervision.valkey import ValkeyServer
from streams.log import append, config, entries, fsck, fsck_groups, keys
from streams.log.client import Log
from streams.log.commands import Op

NEAR_THE_END_BYTES = 64 * 1024
STARTS_WITHIN_S = 60.0
PAGE = 1000
BEFORE = (killed_while_rewriting, killed("valkey"))
"""What the file has been through when it is cut, once for so many places, and twice at least."""

PLACES = 60


@dataclass(frozen=True, kw_only=True)
class Cut:
    """One cut: where, what was left of how much, what was wrong, and how long the store took to start."""

    at_bytes: int
    left: int
    of: int
    faults: tuple[str, ...]
    start_s: float

    def told(self) -> str:
        """All of it, in a line."""
        what = "; ".join(self.faults) or "an exact prefix"
        left = f"{self.left:,} of {self.of:,} messages"
        return f"cut at byte {self.at_bytes:,}: {left}, {what}, started in {self.start_s:.2f} s"


@dataclass(kw_only=True)
class OfCuts(Apart):
    """What came of a product, and of the file that it left."""

    cuts: list[Cut] = field(default_factory=list)


def under_cuts(folder: Path, *, places: int, say: Say = print, within_s: float = math.inf) -> OfCuts:
    """Put the load on a product, and cut the file that it leaves at so many places.

    Args:
        within_s: after this time the other cuts are left out.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    began, faults = monotonic(), BEFORE * max(2, places // PLACES)
    with instance(folder, more={"OKMQ_WEB_WORKERS": "2"}) as product:
        apart = asyncio.run(strike_all(product, faults, say, within_s))
    found = OfCuts(load=apart.load, struck=apart.struck, wrong=apart.wrong, left_out=apart.left_out)
    for cut in cuts(product.data_dir, found.history, places=places, folder=folder):
        found.cuts.append(cut)
        say(f"  {cut.told()}")
        if monotonic() - began > within_s:
            if len(found.cuts) < places:
                found.left_out.append(f"{places - len(found.cuts)} of {places} cuts: the time was up")
                say("  The time is up; the other cuts are left out.")
            break
    return found


def cuts(data_dir: Path, history: History, *, places: int, folder: Path) -> Iterator[Cut]:
    """Start a store on the file cut at so many places, and hold what it has against what was there at the end.

    Raises:
        Broken: a store does not start.
    """
    source = data_dir / "valkey" / "appendonlydir"
    newest = max(source.glob("*.incr.aof"), key=lambda path: int(path.name.split(".")[-3]))
    batches = _batches(history)
    whole = sum(len(remains.messages) for remains in history.remains.values())
    for at in _places(newest.stat().st_size, number=places):
        place = folder / "cut"
        shutil.copytree(source, place / "appendonlydir")
        os.truncate(place / "appendonlydir" / newest.name, at)
        began = monotonic()
        with running_store(place) as (_, log):
            took = monotonic() - began
            left, faults = _compare(log, history, batches)
        shutil.rmtree(place)
        yield Cut(at_bytes=at, left=left, of=whole, faults=tuple(faults), start_s=took)


def _places(size: int, *, number: int) -> list[int]:
    """A third near the end, where a crash cuts; the rest anywhere, also in the middle of a word."""
    near = math.ceil(number / 3)
    end = range(max(0, size - NEAR_THE_END_BYTES), size)
    return [*_one_of_each_part(end, near), *_one_of_each_part(range(size), number - near)]


def _one_of_each_part(places: range, number: int) -> list[int]:
    """Drawn from so many equal parts: wherever a file has something else in it, some of the cuts are there."""
    chosen = random.Random(len(places))
    edges = [places.start + len(places) * n // number for n in range(number + 1)] if number else []
    return [chosen.randint(low, high) for low, high in itertools.pairwise(edges)]


@contextmanager
def running_store(
    folder: Path,
    *,
    fsync: str = "always",
    through: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> Iterator[tuple[str, Log]]:
    """A private store in a folder, empty or as another one left it: its address, and a client.

    Args:
        fsync: when it flushes to disk, as ``appendfsync`` says it.
        through: a command that runs the one given to it.

    Raises:
        Broken: it does not start.
    """
    server = ValkeyServer(folder=folder, socket=folder / "s", fsync=fsync)
    output = folder.with_suffix(".output")
    with child([*through, *server.prepare()], environ=environ, output=output) as process:
        until, pause = monotonic() + STARTS_WITHIN_S, Event()
        while not _answers(server.url):
            if process.poll() is not None or monotonic() > until:
                raise Broken(f"A store does not start:\n{output.read_text()[-2000:]}")
            pause.wait(0.01)
        log = Log(server.url)
        try:
            yield server.url, log
        finally:
            log.close()


def _answers(url: str) -> bool:
    try:
        resp.ping(url)
    except resp.StoreError:
        return False
    return True


def _batches(history: History) -> dict[str, list[tuple[str, ...]]]:
    """The ids of every batch of more than one message, by stream."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for each in history.operations:
        if isinstance(each, Publish) and len(each.ids) > 1:
            found.setdefault(each.stream, {})[each.ids[0]] = each.ids
    return {stream: list(batches.values()) for stream, batches in found.items()}


def _compare(
    log: Log, history: History, batches: Mapping[str, Sequence[tuple[str, ...]]]
) -> tuple[int, list[str]]:
    """How many messages are left, and what of them is not an exact prefix of what was there."""
    left, faults = 0, []
    for held in log.run(config.streams()):
        remains = history.remains.get(held.name)
        if remains is None:
            continue  # one of the product's own
        found = log.run(everything(held.stream_id))
        left += len(found)
        if found != list(remains.messages[: len(found)]):
            faults.append(f"{held.name}: what is left is no prefix")
        there = {each.id for each in found}
        torn = sum(0 < len(there.intersection(ids)) < len(ids) for ids in batches.get(held.name, ()))
        if torn:
            faults.append(f"{held.name}: {torn} batches are torn")
        faults += [f"{held.name}: {sentence}" for sentence in _contradictions(log, held.stream_id)]
        (receipt,) = log.run(
            append.append(held.stream_id, [entries.NewMessage(id="after the cut", body=b"1")])
        )
        if receipt.offset != len(found) + 1:
            faults.append(f"{held.name}: after {len(found)} comes {receipt.offset}")
    return left, faults


def _contradictions(log: Log, stream_id: str) -> list[str]:
    """What the counters, indexes and groups of a stream say against its messages."""
    looked = log.run(fsck.look(stream_id))
    if looked is None:
        return ["it is registered, and there is nothing of it"]
    in_groups = log.run(fsck_groups.look(stream_id, last=looked.right.counters.last))
    return [finding.sentence for finding in (*looked.findings, *in_groups)]


def everything(stream_id: str) -> Op[list[Seen]]:
    """All messages of a stream, as the store has them."""
    found: list[Seen] = []
    start = "-"
    while True:
        page = yield ("XRANGE", keys.log(stream_id), start, "+", "COUNT", PAGE)
        for entry in page:
            message = entries.parse(entry)
            found.append(
                Seen(
                    offset=message.offset,
                    id=message.id,
                    content=(message.timestamp, checksum(message.body)),
                    key=message.key or "",
                    headers=checksum(message.headers),
                )
            )
        if len(page) < PAGE:
            return found
        start = f"({page[-1][0].decode()}"
