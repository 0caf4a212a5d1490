"""A store whose memory is used up under load: it refuses with a reason, lets go of what it has, and heals."""

from time import monotonic
from typing import Any

import msgspec

from okmq.prove.callers import FULL, Scene
from okmq.prove.faults import NEXT_CALL_S, NotBack, Struck, Target
from okmq.prove.history import Publish, Read
from okmq.prove.http import Client, NoAnswer, NotSent
from okmq.prove.machine import look

REFUSED_WITHIN_S = 1.0
SPARE = "spare"


async def memory_used_up(target: Target) -> Struck:
    """``maxmemory`` far below what is held, until all was seen that must go on and all that must not.

    Raises:
        NotBack: what has to go on did not.
    """
    spare = Spare(target.scene)
    await spare.make()
    began, since = monotonic(), look()
    await target.store("CONFIG", "SET", "maxmemory", "1mb")
    try:
        await target.wait(lambda: target.saw(Publish, "info", began), what="a publish is refused")
        await target.wait(lambda: target.saw(Read, "ok", began), what="reads go on")
        await spare.let_go()
    finally:
        await target.store("CONFIG", "SET", "maxmemory", "0")
    allowed_s = target.scene.machine.taken(since).allows_s(REFUSED_WITHIN_S)
    room_at = monotonic()
    back = await target.publishes_again(room_at)
    await spare.end()
    refused = [
        each
        for each in target.since(began)
        if isinstance(each, Publish)
        and each.outcome == "info"
        and began <= each.began
        and each.ended < room_at
    ]
    slowest = max(each.ended - each.began for each in refused)
    without = sum(each.code != FULL for each in refused)
    wrong = []
    if slowest > allowed_s:
        wrong.append(f"a publish into a full store was refused after {slowest:.1f} s")
    if without:
        wrong.append(f"a full store refused {without} publishes without the reason")
    note = f"refused within {slowest:.2f} s"
    return Struck(
        name="CONFIG SET maxmemory 1mb",
        began=began,
        back=back,
        recovery_s=back - room_at,
        allowed_s=NEXT_CALL_S,
        wrong=tuple(wrong),
        note=note,
    )


class Spare:
    """A stream of the fault's own: a message of it is out, which is then acknowledged, deleted, purged."""

    def __init__(self, scene: Scene) -> None:
        self._client = Client(scene.ports[0], token=scene.token)
        self._lease = ""

    async def make(self) -> None:
        await self._ask("POST", "/streams/", {"name": SPARE})
        await self._ask("POST", f"/streams/{SPARE}/groups/", {"name": "g"})
        await self._ask("POST", f"/streams/{SPARE}/messages", [{"id": str(n), "body": n} for n in range(3)])
        (taken,) = await self._ask("POST", f"/streams/{SPARE}/groups/g/fetch", {"limit": 1, "wait": 5})
        self._lease = taken["lease"]

    async def let_go(self) -> None:
        acked = await self._ask("POST", f"/streams/{SPARE}/groups/g/ack", {"leases": [self._lease]})
        deleted = await self._ask("DELETE", f"/streams/{SPARE}/messages/2")
        purged = await self._ask("DELETE", f"/streams/{SPARE}/messages")
        if (acked["acked"], deleted["deleted"], purged["deleted"]) != (1, 1, 2):
            raise NotBack(f"A full store let go of {acked}, {deleted}, {purged}.")

    async def end(self) -> None:
        await self._ask("DELETE", f"/streams/{SPARE}")
        self._client.close()

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else msgspec.json.encode(body)
        try:
            answer = await self._client.ask(method, path, data, wait_s=5.0)
        except (NotSent, NoAnswer) as error:
            raise NotBack(f"{method} {path} had no answer: {error}.") from None
        if answer.status >= 300:
            raise NotBack(f"{method} {path} was answered with {answer.status} {answer.body[:200].decode()}.")
        return msgspec.json.decode(answer.body) if answer.body else None
