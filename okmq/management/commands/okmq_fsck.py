"""``manage.py okmq_fsck``: the log against itself and the database; ``--repair`` puts right what can be derived."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from streams.log.errors import LogError
from streams.log.fsck import Finding
from streams.models import Stream
from streams.services.fsck import log_check

FOUND, UNKNOWN = 1, 2


class Command(BaseCommand):
    """Exit code 0 when everything agrees or was put right, 1 when something does not, 2 when nothing could be told."""

    help = (
        "Compare every durable stream's messages with its counters and indexes, what groups have in flight, and what "
        "the log was told with the database. Looks only, also while OKMQ runs; --repair puts right what follows from "
        "the messages and from the database."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="put right what can be derived")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = log_check(repair=bool(options["repair"]))
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


def _told(finding: Finding, names: dict[str, str]) -> str:
    where = names.get(finding.stream_id) or finding.stream_id
    return f"{where}: {finding.sentence}" if where else finding.sentence
