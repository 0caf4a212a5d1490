"""``manage.py okmq_diff FILE``: what applying a configuration file would change."""

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from okmq.operation.declaring import file_applied
from streams.api.declared import wording

DIFFERENT = 1


class Command(BaseCommand):
    """Exit code 0 when there is nothing to change, 1 when there is, 2 when the file cannot be applied."""

    help = (
        "Say what okmq_apply would change, field by field, and how many messages would go. Changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="a YAML file, or - for standard input")
        parser.add_argument("--json", action="store_true", help="say it as one JSON object, for programs")
        parser.add_argument("--workspace", default="", help="instead of the one that the file names")
        parser.add_argument("--prune", action="store_true", help="as if what is not declared were deleted")

    def handle(self, *args: Any, **options: Any) -> None:
        outcome, workspace = file_applied(
            options["file"], workspace=options["workspace"], prune=options["prune"], dry_run=True
        )
        if options["json"]:
            self.stdout.write(json.dumps(wording.as_json(outcome, workspace), ensure_ascii=False))
        else:
            for line in wording.lines(outcome, workspace):
                self.stdout.write(line)
            self.stdout.write(wording.summary(outcome))
        if outcome.changes:
            sys.exit(DIFFERENT)
