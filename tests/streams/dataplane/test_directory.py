"""What the data plane remembers of streams, and when it forgets."""

import asyncio
from collections.abc import Callable
from typing import Any

from streams.dataplane.directory import Directory
from streams.log.client import AsyncLog
from tests.streams.dataplane.conftest import Stream


class LateLog(AsyncLog):
    """Hands an answer over only when it is told to."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.answered, self.may_go = asyncio.Event(), asyncio.Event()
        self.may_go.set()

    async def run(self, op: Any) -> Any:
        answer = await super().run(op)
        self.answered.set()
        await self.may_go.wait()
        return answer


async def test_what_changes_while_it_is_looked_up_is_not_remembered_as_it_was(
    valkey: str, token_for: Callable[..., str], stream: Stream
) -> None:
    late = LateLog(valkey)
    directory = Directory(late)
    grant = await directory.grant(f"Bearer {token_for('admin')}".encode())
    late.may_go.clear()
    late.answered.clear()
    looking = asyncio.create_task(directory.stream(grant, stream.name, may="read"))
    await late.answered.wait()
    directory.forget("stream")
    late.may_go.set()
    before = await looking
    late.answered.clear()
    assert await directory.stream(grant, stream.name, may="read") == before
    assert late.answered.is_set()  # it was looked up again
    late.answered.clear()
    await directory.stream(grant, stream.name, may="read")
    assert not late.answered.is_set()
    await late.close()
