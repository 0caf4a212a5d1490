"""``manage.py okmq_verify_events``: prove that nobody changed what the events say."""

import re
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from streams import selectors
from streams.log.errors import LogError
from streams.services.events import events_anchor_anew

BROKEN, UNKNOWN = 1, 2
HEAD = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


class Command(BaseCommand):
    """Exit code 0 when the chain holds, 1 when it is broken, 2 when it could not be looked at."""

    help = (
        "Walk the hash chain of events. Keep the last line that it prints in another place: --expect compares with "
        "it later, so that not even somebody who writes to the database and the message store can cut off or rewrite "
        "what was before it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--expect",
            metavar="ID:HASH",
            help="an event as this command printed it earlier; must be there still",
        )
        parser.add_argument(
            "--anchor",
            action="store_true",
            help="after a backup was brought back: take the chain as it stands, and record an event that says so",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        expected = None
        if options["expect"]:
            match = HEAD.fullmatch(options["expect"])
            if match is None:
                raise CommandError("--expect takes ID:HASH as this command prints it.", returncode=UNKNOWN)
            expected = (int(match[1]), match[2])
        try:
            if options["anchor"]:
                events_anchor_anew()
            proof = selectors.events_prove(expected=expected)
        except LogError as error:
            raise CommandError(f"The message store does not answer: {error}", returncode=UNKNOWN) from None
        for fault in proof.faults:
            self.stderr.write(f"event {fault.event_id}: {fault.sentence}")
        if proof.faults:
            first = proof.faults[0].event_id
            raise CommandError(
                f"The chain of {proof.events} events is broken, first at event {first}.", returncode=BROKEN
            )
        self.stdout.write(f"{proof.events} events hold together; compared with {proof.anchors} anchors.")
        self.stdout.write(f"{proof.last}:{proof.hash}")
