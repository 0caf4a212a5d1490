"""What the parts of a proof found is kept and told together, whichever of them ran last."""

from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from okmq.prove import jumps, promises, report
from okmq.prove.apart import Apart
from okmq.prove.checking import COUNTS
from okmq.prove.cuts import Cut, OfCuts
from okmq.prove.faults import Struck
from okmq.prove.found import ENOUGH_IN_FLIGHT, KEPT, Found, Proof, found_by, read, write
from okmq.prove.history import Publish, Remains, Seen
from okmq.prove.load import Load
from okmq.prove.proving import PARTS, QUICK, prove


def of(told: str, *, in_flight: int = ENOUGH_IN_FLIGHT, lost: int = 0, note: str = "") -> Found:
    struck = [Struck(name="CONFIG SET appendfsync no", began=1.0, back=2.5, note=note)]
    return Found(
        told=told,
        where=f"{told} ended",
        took_s=60.0,
        calls={"ok": 10},
        in_flight=in_flight,
        counts={**dict.fromkeys(COUNTS, 0), "lost": lost},
        struck=struck,
        wrong=lost,
        sentences=[f"{number} is lost" for number in range(lost)][:KEPT],
    )


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    cut = Cut(at_bytes=1, left=2, of=3, faults=("a", "b"), start_s=0.5)
    found = Found(told="a", where="b", took_s=0.1, struck=of("x").struck, cuts=[cut])
    proof = Proof(parts={"kills": of("Kills."), "cuts": found})
    write(tmp_path / "p.json", proof)
    assert read(tmp_path / "p.json") == proof
    assert read(tmp_path / "none.json") == Proof()


def test_the_page_tells_all_parts_and_the_findings_of_each() -> None:
    proof = Proof(
        parts={
            "kills": of("Kills.", lost=2),
            "clock": replace(of("Clock.", note="after 1 s"), lost_in_window=5),
        }
    )
    page = report.page(proof)
    assert "20 calls (20 ok, 0 fail, 0 info), 2,000 of them in flight during 2 faults" in page
    assert "**2 findings.**" in page
    assert "| Kills. | 10 | 1 | 0 | 1.0 | 2 | Kills. ended |" in page
    assert "| Clock. | 10 | 1 | 0 | 1.0 | 0 | Clock. ended |" in page
    assert "| 2 lost; 5 lost that were acknowledged with less than `fsync` |" in page
    assert "| after 1 s |" in page
    assert "\n- 0 is lost\n- 1 is lost\n" in page


def test_too_few_calls_in_flight_do_not_count() -> None:
    few = Proof(parts={"kills": of("Kills.", in_flight=ENOUGH_IN_FLIGHT - 1)})
    sentence = "{} Only {} operations were in flight during its faults: it does not count"
    assert few.sentences() == [sentence.format("Kills.", 999)]
    assert Proof(parts={"kills": of("Kills.")}).sentences() == []


def test_each_part_counts_by_what_was_in_flight_in_it() -> None:
    """What one had says nothing of another: no part lives on the calls of the others."""
    proof = Proof(parts={"kills": of("Kills."), "replica": of("Replica.", in_flight=0)})
    sentence = "Replica. Only 0 operations were in flight during its faults: it does not count"
    assert proof.sentences() == [sentence]
    assert sentence in report.page(proof)
    assert "Everything held." not in report.page(proof)


def test_calls_beside_a_history_and_after_the_recovery_are_in_flight_too() -> None:
    apart = Apart(load=Load(1, token=""), beside=7)
    asked = Publish(
        began=5, ended=6, outcome="info", stream="s", ids=("a",), bodies=(0,), keys=("",), headers=(0,)
    )
    apart.history.note(asked)
    apart.struck = [Struck(name="the clock of the store is set right", began=1.0, back=2.0)]
    assert found_by([apart], told="", took_s=0.0).in_flight == 7
    apart.struck = [replace(apart.struck[0], lasted_until=5.5)]
    assert found_by([apart], told="", took_s=0.0).in_flight == 8


def test_what_was_left_out_is_named_and_then_not_everything_held(tmp_path: Path) -> None:
    all_of_it = {name: of(f"{name}.") for name in PARTS}
    assert "Everything held." in report.page(Proof(parts=all_of_it))
    assert report.all_held(Proof(parts=all_of_it)) == "Every promise held."
    quick = {name: each for name, each in all_of_it.items() if name != "spark"}
    page = report.page(Proof(parts=quick, left_out={"spark": "there is no Java"}))
    assert "Everything held." not in page
    assert "\n## Left out\n\n- spark: there is no Java\n" in page
    assert "- spark: not run yet" in report.page(Proof(parts=quick))
    assert report.all_held(Proof(parts=quick)) == "Every promise held in what this run has; it has no spark."
    some = replace(of("Kills."), left_out=["3 of 9 faults: the time was up"])
    proof = Proof(parts={**all_of_it, "kills": some})
    assert proof.missing() == ["kills: 3 of 9 faults: the time was up"]
    assert "Everything held." not in report.page(proof)
    write(tmp_path / "p.json", proof)
    assert read(tmp_path / "p.json").missing() == proof.missing()


def test_a_part_that_this_machine_cannot_do_is_left_out_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jumps, "FOLDERS", ())
    said: list[str] = []
    proof = prove(QUICK, say=said.append, folder=tmp_path, only=["clock"])
    assert (proof.parts, proof.left_out) == ({}, {"clock": "libfaketime is not installed"})
    assert said == ["Left out, libfaketime is not installed: The clock of a store is set 5 times."]
    with pytest.raises(CommandError, match=r"left out was: clock: libfaketime is not installed") as raised:
        call_command("okmq_prove", "--only", "clock", "--report", str(tmp_path / "page.md"))
    assert raised.value.returncode == 3
    assert "- clock: libfaketime is not installed" in (tmp_path / "page.md").read_text()


def test_every_finding_is_counted_and_the_first_are_kept() -> None:
    apart = OfCuts(load=Load(1, token=""))
    apart.history.note(
        Publish(
            began=0,
            ended=1,
            outcome="ok",
            stream="s",
            ids=("a",),
            bodies=(0,),
            keys=("",),
            headers=(0,),
            offsets=(1,),
            known=(False,),
        )
    )
    held = (Seen(offset=1, id="a", content=("", 0)),)
    apart.history.remains["s"] = Remains(messages=held, offset=1, count=1)
    apart.struck = [Struck(name="SIGSTOP of valkey", began=2.0, back=3.0)]
    apart.load.scene.late = [("POST /messages", 1.0), ("POST /messages", 2.5)]
    apart.load.scene.surprises["a 500"] += 3
    apart.cuts = [Cut(at_bytes=n, left=0, of=0, faults=("torn",), start_s=0.0) for n in range(2 * KEPT)]
    found = found_by([apart], told="", took_s=0.0, wrong=["it broke off"])
    assert (found.calls, found.late, found.surprises) == ({"ok": 1}, 2, 3)
    assert found.wrong == 1 + 1 + 2 + 2 * KEPT
    assert found.sentences[:4] == [
        "it broke off",
        "unexpected answer: a 500 (3 times)",
        "not answered by the deadline: POST /messages, sent before any fault (1 times)",
        "not answered by the deadline: POST /messages, sent after SIGSTOP of valkey (1 times)",
    ]
    assert len(found.sentences) == KEPT


def test_a_record_that_is_none_ends_it_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "page.json").write_text('{"parts": {"kills": 1}}')
    with pytest.raises(CommandError, match=r"page\.json is not what a proof has written"):
        call_command("okmq_prove", "--only", "clock", "--report", str(tmp_path / "page.md"))
    assert not (tmp_path / "page.md").exists()


def test_what_a_run_of_before_did_not_count_is_not_told_as_none() -> None:
    figure = next(each.figure for each in promises.PROMISES if "committed offset" in each.sentence)
    before = replace(of("Kills."), counts={"commits backwards": 0})
    assert figure is not None
    assert figure(Proof(parts={"kills": before})) == "0 commits backwards"
    assert figure(Proof(parts={"kills": of("Kills.")})) == "0 commits backwards, 0 commits by nobody"
