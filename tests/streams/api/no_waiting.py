"""What schemathesis is told: nobody publishes while it asks, so what may wait does not."""

from typing import Any

import schemathesis

LONGEST_WAIT_S = 30


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]
) -> None:
    """Take the wait out of a right request to read or to fetch; a wrong one stays as wrong as it is."""
    operation = case.operation.definition.raw.get("operationId")
    asked = {"messages_read": case.query, "group_fetch": case.body}.get(operation)
    if isinstance(asked, dict) and _waits(asked.get("wait", LONGEST_WAIT_S)):
        asked["wait"] = 0


def _waits(wait: object) -> bool:
    if wait is None:  # the longest by default
        return True
    try:
        return not isinstance(wait, bool) and 0 <= float(str(wait)) <= LONGEST_WAIT_S
    except ValueError:
        return False
