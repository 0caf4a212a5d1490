"""``manage.py okmq_export_events``: every event, one JSON object a line."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from streams import selectors


class Command(BaseCommand):
    help = "Write events in order as NDJSON, with their hashes (see streams/chain.py for what is hashed)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--after", type=int, default=0, metavar="ID", help="only events after this id")
        parser.add_argument("--workspace", default="", help="only those of one workspace, also a deleted one")

    def handle(self, *args: Any, **options: Any) -> None:
        for event in selectors.events_exported(after=options["after"], workspace=options["workspace"]):
            self.stdout.write(json.dumps(event, ensure_ascii=False))
