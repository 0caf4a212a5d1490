"""``manage.py okmq_restore FOLDER``: make the data folder of a backup."""

import signal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from okmq.operation.backup import BackupError, check, restore
from okmq.supervision import restoring

INTERRUPTED = 130


class Command(BaseCommand):
    """Exit code 0 with everything in place, else 1, one sentence, and nothing put there."""

    help = (
        "Put a backup into the data folder that OKMQ_DATA_DIR names, which must hold no data yet. Then start OKMQ: "
        "every stream is an exact prefix of what it was, with its groups."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="as okmq_backup wrote it")
        parser.add_argument("--check", action="store_true", help="only look whether the backup is whole")

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        folder: Path = options["folder"].absolute()
        try:
            contents = check(folder) if options["check"] else restore(folder, settings.ENV)
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            told = restoring.refusal(settings.ENV.data_dir) or "Interrupted: nothing was restored."
            raise CommandError(told, returncode=INTERRUPTED) from None
        what = f"{contents.streams} streams with {contents.messages:,} messages, as of {contents.taken_at}"
        if options["check"]:
            self.stdout.write(f"The backup is whole: {what}.")
        else:
            self.stdout.write(f"{what}, are in {settings.ENV.data_dir}. Start OKMQ on it (make run).")
