"""``manage.py okmq_prove``: kill a product of one's own under load, and print what was lost."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from okmq.env import PROJECT
from okmq.prove import found, report
from okmq.prove.found import Proof
from okmq.prove.proving import FULL, PARTS, QUICK, Plan, prove

STOPPED, NOT_ALL = 130, 3
SHOWN = 40
NUMBERS = ("web", "valkey", "worker", "rewriting", "stops", "commands", "cuts", "spark")


class Command(BaseCommand):
    """Exit code 0 when every promise held, 1 when one did not or the run does not count, 130 after Ctrl-C.

    3 when none was broken and something was left out that the run was to do.
    """

    help = (
        "Start a product in a folder of its own, put load on it, kill and stop its processes, cut its files, and "
        "count everything that the promises exclude. Nothing of it touches a product that runs already."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--quick", action="store_true", help="under 8 minutes instead of three to five hours"
        )
        for name in NUMBERS:
            parser.add_argument(
                f"--{name}", type=int, metavar="N", help=f"instead of the mode's number of {name}"
            )
        parser.add_argument(
            "--steady",
            type=float,
            metavar="MINUTES",
            help="for so long half of the peak is borne (full: 60); 0 leaves it out",
        )
        parser.add_argument(
            "--within",
            type=float,
            metavar="MINUTES",
            help="instead of the mode's time (quick: under 8), after which what is left is left out and named",
        )
        parser.add_argument(
            "--only",
            action="append",
            choices=PARTS,
            metavar="PART",
            help=f"carry out this part alone, may be given several times: {', '.join(PARTS)}",
        )
        parser.add_argument(
            "--report",
            type=Path,
            metavar="FILE",
            help="write the page here (make prove: docs/guarantees.md), and beside it, as .json, what it is made of; "
            "what is there of other parts stays",
        )
        parser.add_argument(
            "--keep", action="store_true", help="keep the folder, with the logs, also when all held"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        plan, before = _plan(options), _before(options["report"])
        self._began = monotonic()
        folder = Path(tempfile.mkdtemp(prefix="okmq-prove-"))
        keep, left = True, "nothing of it"

        def ended(proof: Proof) -> None:
            nonlocal left
            if options["report"]:
                _write(options["report"], _joined(before, proof))
                left = f"what it found of {', '.join(proof.parts)}"

        try:
            proof = prove(plan, say=self._say, folder=folder, only=options["only"] or PARTS, ended=ended)
            keep = bool(options["keep"] or proof.sentences())
        except KeyboardInterrupt:
            keep = False
            raise CommandError(f"Stopped; {left} is left.", returncode=STOPPED) from None
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
        self._tell(proof, folder=folder if keep else None)
        if options["report"]:
            _write(options["report"], _joined(before, proof))
        if wrong := proof.sentences():
            raise CommandError(f"{len(wrong)} findings. The folder is kept: {folder}")
        if missing := proof.missing():
            told = f"No promise was broken; left out was: {'; '.join(missing)}."
            raise CommandError(told, returncode=NOT_ALL)

    def _say(self, sentence: str) -> None:
        self.stdout.write(f"{monotonic() - self._began:6.0f} s  {sentence}")
        self.stdout.flush()

    def _tell(self, proof: Proof, *, folder: Path | None) -> None:
        self.stdout.write("")
        self.stdout.write(report.counts(proof))
        self.stdout.write(f"\n{report.summary(proof)}")
        wrong = proof.sentences()
        for sentence in wrong[:SHOWN]:
            self.stderr.write(sentence)
        if len(wrong) > SHOWN:
            self.stderr.write(f"… and {len(wrong) - SHOWN} more.")
        if not wrong and not proof.missing():
            kept = f" The folder is kept: {folder}" if folder else ""
            self.stdout.write(report.all_held(proof) + kept)


def _plan(options: dict[str, Any]) -> Plan:
    plan = QUICK if options["quick"] else FULL
    given = {name: options[name] for name in NUMBERS if options[name] is not None}
    if options["steady"] is not None:
        given["steady_s"] = 60 * options["steady"]
    if options["within"] is not None:
        given["within_s"] = 60 * options["within"]
    if any(number < 0 for number in given.values()):
        raise CommandError("Numbers of faults, and minutes, are 0 or more.")
    return replace(plan, **given)


def _before(page: Path | None) -> Proof:
    """What other runs have found."""
    if page is None:
        return Proof()
    try:
        return found.read(_record(page))
    except ValueError as error:
        raise CommandError(f"{_record(page)} is not what a proof has written: {error}") from None


def _joined(before: Proof, proof: Proof) -> Proof:
    """What was found before, with what is newer in its place."""
    still = {name: why for name, why in before.left_out.items() if name not in proof.parts}
    parts = {**before.parts, **proof.parts}
    return Proof(parts=parts, left_out={**still, **proof.left_out})


def _record(page: Path) -> Path:
    return (PROJECT / page).with_suffix(".json")


def _write(page: Path, proof: Proof) -> None:
    """In the order of the parts."""
    proof.parts = {name: proof.parts[name] for name in PARTS if name in proof.parts}
    found.write(_record(page), proof)
    (PROJECT / page).write_text(report.page(proof), "utf-8")
