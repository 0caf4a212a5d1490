"""A coroutine's first step taken at once: it behaves as if it had been awaited."""

import asyncio

import pytest

from streams.dataplane.stepping import Stepped


class Steps:
    """Waits for an event, and notes how far it came."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.passed: list[str] = []

    async def run(self) -> str:
        self.passed.append("begun")
        try:
            await self.event.wait()
            await asyncio.sleep(0)
        finally:
            self.passed.append("ended")
        return "result"


async def test_what_need_not_wait_is_done_at_once() -> None:
    steps = Steps()
    steps.event.set()
    stepped = Stepped(steps.event.wait())
    assert stepped.is_done
    assert await stepped is True


async def test_what_has_to_wait_goes_on_when_it_is_awaited() -> None:
    steps = Steps()
    stepped = Stepped(steps.run())
    assert (stepped.is_done, steps.passed) == (False, ["begun"])
    asyncio.get_running_loop().call_soon(steps.event.set)
    assert await stepped == "result"
    assert steps.passed == ["begun", "ended"]


async def test_an_error_of_the_first_step_is_raised_at_once() -> None:
    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Stepped(fails())


async def test_a_time_limit_ends_it_where_it_waits() -> None:
    steps = Steps()
    stepped = Stepped(steps.run())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await stepped
    assert steps.passed == ["begun", "ended"]


async def test_what_is_dropped_ends_where_it_waits() -> None:
    steps = Steps()
    Stepped(steps.run()).drop()
    assert steps.passed == ["begun", "ended"]
