"""``manage.py okmq_fsck``: the log against itself and the database; ``--repair`` puts right what can be derived."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from okmq.operation.history_check import kept_history
from streams.log.errors import LogError
from streams.log.fsck import Finding
from streams.models import Stream
from streams.services.fsck import Report, log_check
from streams.services.fsck_history import history_findings, history_mend

FOUND, UNKNOWN = 1, 2


class Command(BaseCommand):
    """Exit code 0 when everything agrees or was put right, 1 when something does not, 2 when nothing could be told."""

    help = (
        "Compare every durable stream's messages with its counters and indexes, what groups have in flight, what the "
        "log was told with the database, and the history's files with its log and with what is said of it. Looks "
        "only, also while OKMQ runs; --repair puts right what follows from the messages, the files and the database."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="put right what can be derived")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            history = _history_check(repair=bool(options["repair"]))
            report = log_check(repair=bool(options["repair"]))
            report.findings += history.findings
            report.mended += history.mended
        except LogError as error:
            raise CommandError(f"The message store does not answer: {error}", returncode=UNKNOWN) from None
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {error}", returncode=UNKNOWN) from None
        names = dict(Stream.objects.values_list("stream_id", "name"))
        for each in report.mended:
            self.stdout.write(f"put right: {_told(each, names)}")
        for each in report.findings:
            hint = " (--repair puts it right)" if each.derivable and not options["repair"] else ""
            self.stderr.write(_told(each, names) + hint)
        looked = f"{report.streams} streams with {report.messages:,} messages were looked at"
        if report.findings:
            raise CommandError(f"{looked}; {len(report.findings)} things are wrong.", returncode=FOUND)
        self.stdout.write(f"{looked}; everything agrees.")


def _history_check(*, repair: bool) -> Report:
    """Hold the history against itself, the log and the figures; what is found is looked at a second time."""
    report = Report()
    report.findings, ends = _history_look()
    if report.findings:
        suspected = {(each.stream_id, each.what) for each in report.findings}
        again, ends = _history_look()
        report.findings = [each for each in again if (each.stream_id, each.what) in suspected]
    if repair and any(each.derivable for each in report.findings):
        history_mend(report.findings, ends)
        left, _ = _history_look()
        still = {(each.stream_id, each.what) for each in left}
        report.mended = [each for each in report.findings if (each.stream_id, each.what) not in still]
        report.findings = [each for each in report.findings if (each.stream_id, each.what) in still]
    return report


def _history_look() -> tuple[list[Finding], Mapping[str, int]]:
    try:
        seen = kept_history(settings.ENV)
    except (OSError, ValueError) as error:
        told = f"the history's log cannot be read: {error}"
        return [Finding(stream_id="", what="history: log", sentence=told)], {}
    if seen.ends is None:
        return [], {}
    return [*seen.findings, *history_findings(seen.ends)], seen.ends


def _told(finding: Finding, names: dict[str, str]) -> str:
    where = names.get(finding.stream_id) or finding.stream_id
    return f"{where}: {finding.sentence}" if where else finding.sentence
