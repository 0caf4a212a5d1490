"""What doing something costs, in statements and round trips rather than time.

A process looks at the server's clock once a second, and several times at first where the machine is busy: no cost of
what is done then. A single server is not asked which nodes there are. Nor is what a connection to SQLite is told or
asked of itself (``PRAGMA``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from streams.log.client import Clocks, Log, Reachable, Servers, Steady


@dataclass
class Cost:
    """SQL statements, round trips to the log, and commands in them."""

    statements: int = 0
    trips: int = 0
    commands: int = 0


def cost_of(act: Callable[[], Any]) -> Cost:
    """Do it, whose answer must be a success, and count."""
    counted, looking = Cost(), False
    send, look = Log._send, Log._looked

    def uncounted(ask: Callable[[], Any]) -> Any:
        """A look at the clock, which one call in many takes."""
        nonlocal looking
        was_looking, looking = looking, True
        try:
            return ask()
        finally:
            looking = was_looking

    def counting(log: Log, command: Any) -> Any:
        if looking or isinstance(command, Steady | Clocks):
            return uncounted(lambda: send(log, command))
        if isinstance(command, Reachable | Servers):
            return send(log, command)
        counted.trips += 1
        counted.commands += len(getattr(command, "commands", ())) + len(getattr(command, "calls", ())) or 1
        return send(log, command)

    with pytest.MonkeyPatch.context() as patch, CaptureQueriesContext(connection) as queries:
        patch.setattr(Log, "_send", counting)
        patch.setattr(Log, "_looked", lambda log: uncounted(lambda: look(log)))
        answer = act()
    assert answer.status_code in {200, 201}, answer.content
    counted.statements = sum(not query["sql"].startswith("PRAGMA") for query in queries)
    return counted
