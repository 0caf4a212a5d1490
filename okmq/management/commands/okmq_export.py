"""``manage.py okmq_export``: a workspace's configuration as a file."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from okmq.operation.declaring import workspace_of
from streams.api.declared.state import exported
from streams.models import DEFAULT_WORKSPACE


class Command(BaseCommand):
    help = (
        "Write streams, groups, policies and alert rules of a workspace as YAML, "
        "of which okmq_apply makes the same again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE)

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(exported(workspace_of(options["workspace"])), ending="")
