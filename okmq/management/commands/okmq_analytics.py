"""``manage.py okmq_analytics``: the process that lets Spark keep and count the history."""

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from okmq.analytics import process


class Command(BaseCommand):
    """Runs until SIGTERM or SIGINT."""

    help = "Copy what was published to the history and count it, on demand and on a schedule."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        code = process.run(settings.ENV)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # a thread that waits for a JVM that has gone must not hold up the end
