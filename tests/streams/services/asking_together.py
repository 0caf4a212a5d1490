"""Two that ask at the same moment for the last place there is: ``python -m`` this, in a PostgreSQL of its own.

Prints what each was told, as JSON: nothing where it was taken, else the code of the refusal.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import django
from django.core.management import call_command
from django.db import connection, connections, transaction

from tests.waiting import until


def told(ask: Callable[[], object]) -> str:
    from streams.errors import Refusal

    try:
        ask()
    except Refusal as refusal:
        return refusal.code
    return ""


def told_elsewhere(ask: Callable[[], object]) -> str:
    """From another thread, so with a connection of its own."""
    try:
        return told(ask)
    finally:
        connections.close_all()


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted LIMIT 1")
        return cursor.fetchone() is not None


def together(ask: Callable[[], object], *, most: int) -> tuple[str, str]:
    """What is told to one that takes the last place, and to another that asks before that is committed."""
    for _ in range(most - 1):
        ask()
    with ThreadPoolExecutor(1) as elsewhere:
        with transaction.atomic():
            first = told(ask)
            second = elsewhere.submit(told_elsewhere, ask)
            until(lambda: second.done() or somebody_waits(), what="the second is told, or waits")
        return first, second.result()


def main() -> None:
    django.setup()
    from streams.access import SYSTEM, Caller
    from streams.models import Workspace
    from streams.services import erasures, queries

    call_command("migrate", verbosity=0, skip_checks=True)
    caller = Caller(Workspace.objects.create(name="together"), frozenset({"read", "erase"}), SYSTEM)
    found = {
        "queries": together(lambda: queries.query_ask(caller, sql="SELECT 1"), most=queries.MOST_UNFINISHED),
        "erasures": together(
            lambda: erasures.erasure_request(caller, stream="gone", key="k", deleted=True),
            most=erasures.MOST_UNFINISHED,
        ),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
