"""A disk that gets full under load, by somebody else's file: refusals at once, with the reason, and it heals itself."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from okmq.instance import Broken, Instance, instance
from okmq.prove.apart import Apart
from okmq.prove.callers import FULL
from okmq.prove.faults import PROCESS_S, Struck, Target
from okmq.prove.full_store import REFUSED_WITHIN_S, Spare
from okmq.prove.history import Publish, Read
from okmq.prove.load import Load
from okmq.prove.machine import look
from okmq.supervision.room import RESERVED_SHARE

DISK_BYTES = 256 * 2**20
LEFT_SHARE = RESERVED_SHARE / 2
"""Of the disk: half of what the product keeps for itself is left."""

NO_MOUNT = "only root can mount a small disk of its own"
PIECE = 2**20


def can_be_mounted() -> bool:
    """Whether a file system in memory can be mounted by whoever runs this."""
    with tempfile.TemporaryDirectory() as place:
        try:
            with _disk(Path(place), size_bytes=PIECE):
                return True
        except Broken:
            return False


def on_a_full_disk(folder: Path, *, seconds: float) -> Apart:
    """Put the load on a product whose disk is full for so many seconds.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    place = folder / "data"
    place.mkdir(mode=0o700)
    with (
        _disk(place, size_bytes=DISK_BYTES),
        instance(folder, more={"OKMQ_WEB_WORKERS": "2"}) as product,
    ):
        return asyncio.run(_full_for(product, place, seconds))


@contextmanager
def _disk(place: Path, *, size_bytes: int) -> Iterator[None]:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=0700", "okmq-prove", str(place)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise Broken(f"Nothing can be mounted at {place}.") from None
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=False, capture_output=True)


async def _full_for(product: Instance, place: Path, seconds: float) -> Apart:
    load = Load(product.port, token=product.token)
    apart, target = Apart(load=load), Target(instance=product, scene=load.scene)
    async with load.running():
        await target.publishes_again(monotonic())
        spare = Spare(load.scene)
        await spare.make()
        apart.struck.append(await _full(target, spare, place, seconds))
        await spare.end()
    return apart


async def _full(target: Target, spare: Spare, place: Path, seconds: float) -> Struck:
    began, file = monotonic(), place / "somebody-elses"
    await asyncio.to_thread(_fill, file)
    since = look()
    try:
        full_at = await target.wait(
            lambda: target.saw(Publish, "info", began), what="a publish is refused as the disk is full"
        )
        await target.wait(lambda: target.saw(Read, "ok", full_at), what="reads go on")
        await spare.let_go()
        await target.wait(lambda: monotonic() > full_at + seconds, what="it is full for a while")
        taken = target.scene.machine.taken(since)
    finally:
        file.unlink()
    room_at, since = monotonic(), look()
    back = await target.publishes_again(room_at)
    sent = [
        each
        for each in target.since(full_at)
        if isinstance(each, Publish) and full_at <= each.began and each.ended < room_at
    ]
    refused = [each for each in sent if each.outcome == "info"]
    slowest = max((each.ended - each.began for each in refused), default=0.0)
    without = sum(each.code != FULL for each in refused)
    stored = sum(each.outcome == "ok" for each in sent)
    allowed_s = taken.allows_s(REFUSED_WITHIN_S)
    wrong = []
    if slowest > allowed_s:
        wrong.append(
            f"a full disk: a publish was refused after {slowest:.1f} s, allowed are {allowed_s:.1f} s"
        )
    if without:
        wrong.append(f"a full disk: {without} publishes were refused without the reason")
    if not refused:
        wrong.append("a full disk: nothing was refused")
    return Struck(
        name="somebody else fills the disk",
        began=began,
        back=back,
        recovery_s=back - room_at,
        allowed_s=PROCESS_S,
        taken=target.scene.machine.taken(since),
        note=f"{len(refused):,} publishes refused, the slowest within {slowest:.2f} s, {stored} stored meanwhile",
        wrong=tuple(wrong),
    )


def _fill(file: Path) -> None:
    """Leave so much as makes the product refuse, and what it keeps for what goes on."""
    left = shutil.disk_usage(file.parent).total * LEFT_SHARE
    with file.open("wb") as filling:
        while (free := shutil.disk_usage(file.parent).free) > left:
            os.posix_fallocate(filling.fileno(), filling.tell(), min(PIECE, int(free - left) + 1))
            filling.seek(0, os.SEEK_END)
