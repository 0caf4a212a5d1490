"""A process compares its steady clock with the server's: what it reads for that, notes and leaves to others."""

from contextlib import suppress

from streams.log import errors, keys
from streams.log.clock import FIRST_LOOKS, JUMPS_KEPT, MACHINES_KEPT, SteadyClock, jumps_noted
from streams.log.commands import Op, Pipeline, Script, Steady, small


def compared_ms(clock: SteadyClock, asked: Steady) -> Op[int]:
    """The steady time in ms, once it was compared with the server's clock; a jump is noted."""
    for _ in range(FIRST_LOOKS + 1):
        asked_ms = clock.machine()
        asked_for: list[tuple[str, ...]] = [("TIME",), ("GET", keys.SKEW), ("GET", keys.JUMPS)]
        if clock.machine_name and not clock.is_known:
            asked_for.append(("HGET", keys.CLOCKS, clock.machine_name))
        (seconds, microseconds), held, noted, *left = yield Pipeline(asked_for)
        skew_ms = int(held or 0)
        clock.jumps = jumps_noted(noted, ahead_ms=skew_ms)
        wall_ms = int(seconds) * 1000 + int(microseconds) / 1000
        jump_ms = clock.compare(wall_ms - skew_ms, asked_ms=asked_ms, left=left[0] if left else None)
        if clock.is_rough:
            continue
        if not jump_ms and not clock.misses_a_jump:
            break
        yield Script("clock_skew", [keys.SKEW, keys.JUMPS], [skew_ms, skew_ms + jump_ms, JUMPS_KEPT])
    yield from _leave(clock)
    return clock.now_ms(latest=asked.latest)


def _leave(clock: SteadyClock) -> Op[None]:
    """Leave what is known of the time to processes of this machine that come later."""
    if (left := clock.to_leave()) is None:
        return
    with suppress(errors.LogError):  # it is left again
        if (yield ("HLEN", keys.CLOCKS)) > MACHINES_KEPT:
            yield ("DEL", keys.CLOCKS)
        yield small("HSET", keys.CLOCKS, clock.machine_name, left)
