"""``manage.py okmq_backup FOLDER``: copy a running OKMQ."""

import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from okmq.operation.backup import BackupError, backup
from streams.log.errors import LogError
from streams.models import Run
from streams.models.history import RunState


class Command(BaseCommand):
    """Exit code 0 with the copy in the folder, else 1 and one sentence."""

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
        folder: Path = options["folder"].absolute()
        was_there = folder.exists()
        is_ours = not was_there or not any(folder.iterdir())
        try:
            contents = backup(settings.ENV, folder, history=bool(options["history"]), runs=_runs)
        except (BackupError, LogError, OSError) as error:
            if is_ours:
                _empty(folder, keep=was_there)
            reason = (
                f"The message store does not answer: {error}" if isinstance(error, LogError) else str(error)
            )
            raise CommandError(reason) from None
        self.stdout.write(
            f"{contents.streams} streams with {contents.messages:,} messages, as of {contents.taken_at}, "
            f"are in {folder}."
        )
        if not options["history"] and Path(settings.ENV.history_url).is_dir():
            self.stdout.write("The history's files are not in it (--history).")


def _runs() -> int | None:
    if Run.objects.filter(state=RunState.RUNNING).exists():
        return None
    return Run.objects.filter(started_at__isnull=False).count()


def _empty(folder: Path, *, keep: bool) -> None:
    """Take away what a backup that failed has left."""
    shutil.rmtree(folder, ignore_errors=True)
    if keep:
        folder.mkdir(mode=0o700)
