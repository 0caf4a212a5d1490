"""``manage.py okmq_doctor``: what is wrong here, and what to do."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from okmq.operation.doctor import examined

ADVICE, GRAVE = 1, 2


class Command(BaseCommand):
    """Exit code 0 when there is nothing to do, 1 when there is advice, 2 when OKMQ does not work as it is."""

    help = "Look at the machine, the data folder, the processes and the stores; say what is wrong and what to do."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        told = examined(settings.ENV)
        widest = max(len(each.about) for each in told)
        for each in told:
            mark = "ok" if not each.todo else "!!" if each.grave else "!"
            self.stdout.write(f"{mark:2}  {each.about:<{widest}}  {each.sentence}")
            if each.todo:
                self.stdout.write(f"{'':2}  {'':<{widest}}  → {each.todo}")
        todo = [each for each in told if each.todo]
        if todo:
            grave = any(each.grave for each in todo)
            raise CommandError(f"{len(todo)} things to do.", returncode=GRAVE if grave else ADVICE)
        self.stdout.write("Nothing to do.")
