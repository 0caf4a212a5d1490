"""``manage.py okmq_republish``: tell the log again what the database decides."""

from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from okmq.operation.kept_history import archived_offsets
from streams.log.errors import LogError
from streams.services.installation import AnotherDatabase, configuration_republish


class Command(BaseCommand):
    """Exit code 0 when the log has been told everything, else 1 and one sentence; a second time changes nothing."""

    help = (
        "Tell the log of every stream, group and token again, as each start does; messages and positions stay. A "
        "stream that the log had lost goes on above every offset that it gave; one that only the log has is taken "
        "away."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            streams, tokens = configuration_republish(archived=partial(archived_offsets, settings.ENV))
        except AnotherDatabase as error:
            raise CommandError(f"{error}: OKMQ_DATABASE_URL has to name that one.") from None
        except LogError as error:
            raise CommandError(f"The message store does not answer: {error}") from None
        except (OSError, ValueError) as error:
            raise CommandError(f"The history's log cannot be read: {error}") from None
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {str(error).strip().splitlines()[0]}") from None
        self.stdout.write(f"The log has been told of {streams} streams and {tokens} tokens.")
