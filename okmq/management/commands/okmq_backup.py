"""``manage.py okmq_backup FOLDER``: copy a running OKMQ."""

import signal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from okmq.operation.backup import BackupError, backup
from streams import selectors
from streams.log.errors import LogError

INTERRUPTED = 130


class Command(BaseCommand):
    """Exit code 0 with the copy in the folder, else 1, one sentence, and the folder as it was."""

    help = (
        "Copy messages, groups, configuration and events of the OKMQ that runs on the data folder into an empty "
        "folder. It goes on meanwhile. Streams in memory are not in it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="empty or not there yet")
        parser.add_argument(
            "--history",
            action="store_true",
            help="with the files that Spark wrote (waits until no run goes on)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        folder: Path = options["folder"].absolute()
        history = bool(options["history"])
        try:
            # Without the history the database is not asked: the store's answer comes first.
            runs = selectors.runs_begun_from_now() if history else None
            contents = backup(settings.ENV, folder, runs=runs)
        except BackupError as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            raise CommandError(
                f"Interrupted: there is no backup in {folder}, and nothing of it is left.",
                returncode=INTERRUPTED,
            ) from None
        except LogError as error:
            raise CommandError(f"The message store does not answer: {error}") from None
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {str(error).strip().splitlines()[0]}") from None
        self.stdout.write(
            f"{contents.streams} streams with {contents.messages:,} messages, as of {contents.taken_at}, "
            f"are in {folder}."
        )
        if not history and Path(settings.ENV.history_url).is_dir():
            self.stdout.write("The history's files are not in it (--history).")
