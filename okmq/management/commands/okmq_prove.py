"""``manage.py okmq_prove``: kill a product of one's own under load, and print what was lost."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from okmq.env import PROJECT
from okmq.instance import Broken
from okmq.prove import report
from okmq.prove.faults import NotBack
from okmq.prove.load import Unfinished
from okmq.prove.proving import FULL, QUICK, Plan, Proof, prove

STOPPED = 130
SHOWN = 40
NUMBERS = ("web", "valkey", "worker", "rewriting", "stops", "commands", "cuts", "spark")


class Command(BaseCommand):
    """Exit code 0 when every promise held, 1 when one did not or the run does not count, 130 after Ctrl-C."""

    help = (
        "Start a product in a folder of its own, put load on it, kill and stop its processes, cut its files, and "
        "count everything that the promises exclude. Nothing of it touches a product that runs already."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--quick", action="store_true", help="under 8 minutes instead of an hour or more")
        for name in NUMBERS:
            parser.add_argument(
                f"--{name}", type=int, metavar="N", help=f"instead of the mode's number of {name}"
            )
        parser.add_argument(
            "--report",
            default="",
            metavar="FILE",
            help="write the page here (make prove: docs/guarantees.md); without it nothing is written",
        )
        parser.add_argument(
            "--keep", action="store_true", help="keep the folder, with the logs, also when all held"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        plan = _plan(options)
        self._began = monotonic()
        folder = Path(tempfile.mkdtemp(prefix="okmq-prove-"))
        keep = True
        try:
            proof = prove(plan, say=self._say, folder=folder)
            keep = bool(options["keep"] or proof.faults())
        except KeyboardInterrupt:
            keep = False
            raise CommandError("Stopped; nothing of it is left.", returncode=STOPPED) from None
        except (Broken, NotBack, Unfinished) as error:
            raise CommandError(f"{error}\nThe folder is kept: {folder}") from None
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
        self._tell(proof, folder=folder if keep else None)
        if options["report"]:
            _write(Path(options["report"]), proof, quick=bool(options["quick"]))
        if proof.faults():
            raise CommandError(f"{len(proof.faults())} findings. The folder is kept: {folder}")

    def _say(self, sentence: str) -> None:
        self.stdout.write(f"{monotonic() - self._began:6.0f} s  {sentence}")
        self.stdout.flush()

    def _tell(self, proof: Proof, *, folder: Path | None) -> None:
        self.stdout.write("")
        self.stdout.write(report.counts(proof))
        self.stdout.write(
            f"\n{proof.operations.total():,} calls, {proof.in_flight:,} in flight during {len(proof.struck)} faults; "
            f"{proof.messages:,} messages; {proof.took_s:.0f} s."
        )
        for sentence in proof.faults()[:SHOWN]:
            self.stderr.write(sentence)
        if len(proof.faults()) > SHOWN:
            self.stderr.write(f"… and {len(proof.faults()) - SHOWN} more.")
        if not proof.faults():
            self.stdout.write("Every promise held." + (f" The folder is kept: {folder}" if folder else ""))


def _plan(options: dict[str, Any]) -> Plan:
    plan = QUICK if options["quick"] else FULL
    given = {name: options[name] for name in NUMBERS if options[name] is not None}
    if any(number < 0 for number in given.values()):
        raise CommandError("Numbers of faults are 0 or more.")
    return replace(plan, **given)


def _write(path: Path, proof: Proof, *, quick: bool) -> None:
    where = path if path.is_absolute() else PROJECT / path
    where.write_text(report.page(proof, mode="quick" if quick else "full"), "utf-8")
