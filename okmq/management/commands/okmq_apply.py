"""``manage.py okmq_apply FILE``: make a workspace as a configuration file says."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from okmq.operation.declaring import file_applied
from streams.api.declared import wording


class Command(BaseCommand):
    """Exit code 0 when the workspace is as the file says, 2 when nothing was changed."""

    help = (
        "Make streams, groups, policies and alert rules as a file says: all of it or nothing. "
        "A second time changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="a YAML file, or - for standard input")
        parser.add_argument("--json", action="store_true", help="say it as one JSON object, for programs")
        parser.add_argument("--workspace", default="", help="instead of the one that the file names")
        parser.add_argument("--dry-run", action="store_true", help="only say what it would do")
        parser.add_argument(
            "--prune", action="store_true", help="delete what a section of the file does not declare"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        outcome, workspace = file_applied(
            options["file"],
            workspace=options["workspace"],
            prune=options["prune"],
            dry_run=options["dry_run"],
        )
        if options["json"]:
            self.stdout.write(json.dumps(wording.as_json(outcome, workspace), ensure_ascii=False))
            return
        for line in wording.lines(outcome, workspace):
            self.stdout.write(line)
        said = wording.summary(outcome)
        self.stdout.write(f"Dry run, nothing was changed: {said}" if options["dry_run"] else said)
