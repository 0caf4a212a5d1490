"""How a group stands to one message: who has it, whether it comes yet, or why it does not."""

from dataclasses import dataclass
from typing import Literal

from streams.log.client import Op, Steady
from streams.log.entries import Message
from streams.log.group_scripts import group_script

State = Literal["in_flight", "held_back", "dead_letter", "to_come", "filtered", "passed"]
"""``in_flight``: it was delivered, or given back, and is not settled. ``held_back``: an earlier one of its key is out.
``dead_letter``: it is delivered no more. ``to_come``: the group has not come to it. ``filtered``: its key is none of
the group's. ``passed``: it was acknowledged, or the group began after it or was sought past it.
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """A group's view of a message.

    Attributes:
        deliveries: so far, of one in flight or dead; 0 for one that was given back.
        at_ms: unix ms of that delivery, or of its death; None where there was none.
        consumer: who has it; empty where it gave no name, and where nobody has.
        reason: of a dead letter, as ``dead_letters.DeadLetter`` has it.
        due_in_ms: of one in flight, until it comes again; 0 when it does as soon as somebody fetches.
        is_last: it is delivered as often as the group allows: it becomes a dead letter then.
        before: of one to come, messages of any key that the group comes to first.
    """

    state: State
    deliveries: int = 0
    at_ms: int | None = None
    consumer: str = ""
    reason: str = ""
    due_in_ms: int = 0
    before: int = 0
    is_last: bool = False


def standing(stream_id: str, name: str, message: Message) -> Op[Standing]:
    """How a group stands to a message that is visible; the server takes the same few steps for any.

    Raises:
        StreamNotFound, GroupNotFound.
    """
    steady_ms = yield Steady(latest=True)  # as what goes out is held: never for longer than ack_wait
    args = [message.offset, int(message.key is not None), message.key or ""]
    state, deliveries, at_ms, text, due_ms, before, is_last = yield group_script(
        "group_message", stream_id, name, args
    )
    state, text = state.decode(), text.decode()
    is_dead = state == "dead_letter"
    return Standing(
        state,
        deliveries,
        at_ms or None,
        "" if is_dead else text,
        text if is_dead else "",
        max(0, due_ms - steady_ms) if due_ms else 0,
        before,
        bool(is_last),
    )
