"""``manage.py okmq_setup``: what every start does before the processes start; a second run changes nothing."""

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from okmq.env import Env
from okmq.operation.kept_history import archived_offsets
from okmq.supervision import kept_token
from streams.log.errors import LogError
from streams.services.installation import (
    AnotherDatabase,
    Prepared,
    another_database_refuse,
    configuration_republish,
    installation_prepare,
)
from streams.services.shared_repairs import shared_repair


class Command(BaseCommand):
    help = "Migrate the database, collect static files, make what the first start needs, tell the log everything."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the steps in order; secrets that were made up are printed, this once.

        Raises:
            CommandError: the database or the log cannot be used.
        """
        env: Env = settings.ENV
        static_collect()
        try:
            _database_begin()
            call_command("migrate", interactive=False, verbosity=0)
            another_database_refuse()
            shared_repair()
            prepared = installation_prepare(password=env.admin_password, token=env.admin_token)
            configuration_republish(archived=partial(archived_offsets, settings.ENV))
        except AnotherDatabase as error:
            there = f"delete {env.valkey_dir}" if env.private_store else "empty that server"
            raise CommandError(
                f"{error}: bring that database back, or restore a backup; to begin anew without those messages, "
                f"{there}."
            ) from None
        except DatabaseError as error:
            raise CommandError(
                f"The database cannot be used: {str(error).strip().splitlines()[0]}"
            ) from error
        except LogError as error:
            raise CommandError(f"The message store cannot be used: {error}") from error
        except (OSError, ValueError) as error:
            raise CommandError(f"The history's log cannot be read: {error}") from error
        if prepared.token:
            kept_token.write(env.data_dir, prepared.token)
        self._show(prepared)

    def _show(self, prepared: Prepared) -> None:
        if prepared.password:
            self.stdout.write(f"Password of the user admin (shown this once): {prepared.password}")
        if prepared.token:
            self.stdout.write(f"Token of the workspace default (shown this once): {prepared.token}")


def _database_begin() -> None:
    """A database in a file is for its owner only; the journals beside it get its rights."""
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        path.touch(mode=0o600)


def static_collect() -> bool:
    """Collect, hash and compress the static files when one of them changed since the last time; whether it did."""
    note = Path(settings.STATIC_ROOT).with_suffix(".sources")
    found = static_sources()
    if note.is_file() and note.read_text() == found:
        return False
    note.unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    note.write_text(found)
    return True


def static_sources() -> str:
    """A digest of every static file's place, size and time of change, and of where they go."""
    digest = hashlib.sha256(str(settings.STORAGES["staticfiles"]).encode())
    for finder in get_finders():
        for name, storage in finder.list(ignore_patterns=None):
            known = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{known.st_size}\0{known.st_mtime_ns}\n".encode())
    return digest.hexdigest()
