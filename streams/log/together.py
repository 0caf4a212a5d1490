"""Several operations in step: what they ask at the same time goes to the store in one round trip."""

from collections.abc import Sequence
from typing import Any, cast

from streams.log import damage
from streams.log.commands import Clocks, Command, Op, Pipeline, Script, Scripts, Steady, T
from streams.log.errors import LogError


def together(ops: Sequence[Op[T]]) -> Op[list[T | LogError]]:
    """Run operations side by side; each gives its result, or the error that it was refused with.

    A round costs one trip for all scripts, one for all plain commands and one for the clock, however many operations
    there are. Their order within a round is theirs; nothing else may be relied on.

    Raises:
        StoreUnavailable: a plain command could not be sent; scripts of the memory server fail one by one.
    """
    results: dict[int, T | LogError] = {}
    waiting: dict[int, Command] = {}

    def advance(number: int, reply: Any, command: Command = ()) -> None:
        try:
            op = ops[number]
            waiting[number] = op.throw(reply) if isinstance(reply, LogError) else op.send(reply)
        except StopIteration as stop:
            results[number] = cast(T, stop.value)
        except LogError as error:
            results[number] = error
        except damage.UNREADABLE as error:
            results[number] = damage.found(command, error)

    for number in range(len(ops)):
        advance(number, None)
    while waiting:
        asked = dict(waiting)
        waiting.clear()
        replies: dict[int, Any] = {}
        for clock in {command for command in asked.values() if isinstance(command, Clocks | Steady)}:
            told = yield clock
            replies |= {number: told for number, each in asked.items() if each == clock}
        calls = {
            number: [command] if isinstance(command, Script) else command.calls
            for number, command in asked.items()
            if isinstance(command, Script | Scripts)
        }
        if calls:
            answered = yield Scripts([call for part in calls.values() for call in part])
            replies |= _shared_out(asked, calls, answered)
        plain = {
            number: command.commands if isinstance(command, Pipeline) else [command]
            for number, command in asked.items()
            if isinstance(command, Pipeline | tuple)
        }
        if plain:
            answered = yield Pipeline([each for part in plain.values() for each in part], apart=True)
            replies |= _shared_out(asked, plain, answered)
        for number in asked:
            advance(number, replies[number], asked[number])
    return [results[number] for number in range(len(ops))]


def _shared_out(
    asked: dict[int, Command], parts: dict[int, Sequence[Any]], answered: Sequence[Any]
) -> dict[int, Any]:
    """Each operation's own replies: one, or a list where it asked for several."""
    replies: dict[int, Any] = {}
    at = 0
    for number, part in parts.items():
        own = list(answered[at : at + len(part)])
        at += len(part)
        command = asked[number]
        if isinstance(command, Pipeline) and not command.apart:
            refused = next((each for each in own if isinstance(each, LogError)), None)
            replies[number] = own if refused is None else refused
        else:
            replies[number] = own if isinstance(command, Pipeline | Scripts) else own[0]
    return replies
