"""What the data plane remembers of streams and tokens, and when it forgets."""

import asyncio
from collections.abc import Callable

import pytest

from streams import bearer
from streams.dataplane.directory import Directory
from streams.errors import Refusal
from streams.log import config
from streams.log.client import Log
from tests.streams.dataplane.conftest import LateLog, Stream


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


async def test_a_token_that_is_revoked_while_it_is_looked_up_is_not_remembered(
    valkey: str, token_for: Callable[..., str], log: Log
) -> None:
    late = LateLog(valkey)
    directory = Directory(late)
    secret = token_for("admin")
    header = f"Bearer {secret}".encode()
    late.may_go.clear()
    looking = asyncio.create_task(directory.grant(header))
    await late.answered.wait()
    log.run(config.token_remove(bearer.digest(secret)))
    directory.forget("token")  # it was told before the answer came
    late.may_go.set()
    await looking
    with pytest.raises(Refusal, match="Unknown token"):
        await directory.grant(header)
    await late.close()
