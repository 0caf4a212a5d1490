"""``manage.py okmq_republish``: tell the log again what the database decides."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from streams.log.errors import LogError
from streams.services.installation import configuration_republish


class Command(BaseCommand):
    """Exit code 0 when the log has been told everything, else 1 and one sentence; a second time changes nothing."""

    help = (
        "Tell the log of every stream, group and token again, as each start does; messages and positions stay. A "
        "stream that only the log has is taken away."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            streams, tokens = configuration_republish()
        except LogError as error:
            raise CommandError(f"The message store does not answer: {error}") from None
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {str(error).strip().splitlines()[0]}") from None
        self.stdout.write(f"The log has been told of {streams} streams and {tokens} tokens.")
