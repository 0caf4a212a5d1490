"""The power goes while a store works: what was flushed is there, what was not is gone, and no answer promised more."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from okmq.prove import rewrites
from okmq.prove.cuts import running_store
from okmq.prove.faults import Struck
from okmq.prove.flushes import PowerSwitch
from okmq.prove.found import Found, Proof
from okmq.prove.history import Remains, Seen
from okmq.prove.power import ALWAYS, EVERY_SECOND, FILES, not_kept, pid_of
from okmq.prove.promises import PROMISES
from streams.log.commands import one

HELD = Remains(
    messages=tuple(Seen(offset=n, id=f"m{n}", content=("", n)) for n in (1, 2, 3)), offset=3, count=3
)


def test_what_was_there_after_a_cut_has_to_be_there_after_the_others() -> None:
    assert not_kept("w", HELD, HELD) == []
    without = replace(HELD, messages=HELD.messages[:2])
    assert not_kept("w", HELD, without) == [
        "w: 1 messages that were there after its cut are not there after the others"
    ]
    assert not_kept("w", without, HELD) == ["w: 1 messages are there that were not after its cut"]
    other = replace(HELD, messages=(*HELD.messages[:2], replace(HELD.messages[2], content=("", 9))))
    assert len(not_kept("w", HELD, other)) == 2
    assert not_kept("w", HELD, replace(HELD, offset=2)) == ["w: its offsets were 3, 0 and are 2, 0"]


def cut(name: str, **more: float | str) -> Struck:
    return Struck(name=f"the power of the store goes, {name}", began=0.0, back=1.0, **more)  # type: ignore[arg-type]


def test_of_cuts_in_the_window_the_worst_is_told_and_of_others_how_many_met_a_rewrite() -> None:
    figure = next(each.figure for each in PROMISES if "after the power went" in each.sentence)
    struck = [
        cut(ALWAYS),
        cut(ALWAYS + rewrites.WHILE),
        cut(EVERY_SECOND, note="3 of 9 messages lost", weight=0.4),
        cut(EVERY_SECOND, note="8 of 9 messages lost", weight=1.7),
        cut(EVERY_SECOND, note="5 of 9 messages lost", weight=0.2),
    ]
    power = Found(told="", where="", took_s=0.0, struck=struck, counts={"lost": 0})
    proof = Proof(parts={"kills": replace(power, counts={"lost": 7}), "power": power})
    assert figure is not None
    assert figure(proof) == (
        "5 times, 1 of them while the file was being rewritten: 0 of `fsync` lost; "
        "in the worst of 3: 8 of 9 messages lost"
    )
    assert figure(Proof()) == ""


@pytest.mark.running
@pytest.mark.parametrize(("fsync", "is_there"), [("always", b"1"), ("no", None)])
def test_only_what_was_flushed_is_there(tmp_path: Path, fsync: str, is_there: bytes | None) -> None:
    place = tmp_path / "s"
    switch = PowerSwitch(place / FILES)
    with (
        switch.open(tmp_path / "flushes") as through,
        running_store(place, fsync=fsync, through=through) as (_, log),
    ):
        log.run(one(("SET", "okmq:a", "1")))
        pid = pid_of(log)
        switch.off()
        os.kill(pid, signal.SIGKILL)
    assert (switch.forget() > 0) is (is_there is None)
    with running_store(place, fsync=fsync) as (_, log):
        assert log.run(one(("GET", "okmq:a"))) == is_there
