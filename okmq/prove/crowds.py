"""Crowds that come back at once, polls that are reset, a page that reads nothing: it gets steady and leaks nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TypeVar

from okmq.instance import Instance, busy, instance
from okmq.prove.apart import Apart, Say, open_files
from okmq.prove.browsers import Browser, Poller, logged_in
from okmq.prove.faults import NotBack, Struck, Target
from okmq.prove.load import STREAMS, Load
from okmq.prove.machine import Moment, Taken, look

T = TypeVar("T")

STEADY_WITHIN_S = 15.0
SETTLES_WITHIN_S = 60.0
WAITED = "waited-for"
FRESH_S = 3.0
"""Not older is what a page is told, of a stream that moves."""


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """How many browsers and pollers come back at once, how often; polls that are reset; how long a page hangs."""

    browsers: int
    pollers: int
    turns: int
    resets: int
    hangs_s: float


def under_crowds(folder: Path, *, crowd: Crowd, say: Say = print) -> Apart:
    """Let crowds come to a product that has its load.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    with instance(folder, more={"OKMQ_WEB_WORKERS": "2"}) as product:
        return asyncio.run(_crowds(product, crowd, logged_in(product), say))


async def _crowds(product: Instance, crowd: Crowd, cookie: str, say: Say) -> Apart:
    load = Load(product.port, token=product.token)
    scene = _Scene(product, load, Apart(load=load), cookie, say)
    async with load.running():
        await scene.target.publishes_again(monotonic())
        await load.ask("POST", "/streams/", {"name": WAITED, "archive": False})
        await scene.come_back(crowd.browsers // 10, crowd.pollers // 10, name="")  # what is made once is made
        for _ in range(crowd.turns):
            name = f"{crowd.browsers:,} browsers and {crowd.pollers:,} pollers come back at once"
            await scene.come_back(crowd.browsers, crowd.pollers, name=name)
        await scene.reset(crowd.resets)
        await scene.hang(crowd.hangs_s)
    return scene.apart


class _Scene:
    """What a crowd needs, and what is seen of it."""

    def __init__(self, product: Instance, load: Load, apart: Apart, cookie: str, say: Say) -> None:
        self.product, self.load, self.apart, self._cookie, self._say = product, load, apart, cookie, say
        self.target = Target(instance=product, scene=load.scene)
        self._published = 0

    async def come_back(self, browsers: int, pollers: int, *, name: str) -> None:
        """All at once, until every page was told how its stream stands and every poll has its answer."""
        before, began, since = open_files(self.product), monotonic(), look()
        pages = [self._page(n) for n in range(browsers)]
        polls = [self._poll() for _ in range(pollers)]
        try:
            await _all((each.open() for each in pages), what="every page is told")
            told = monotonic()
            await _all((each.ask() for each in polls), what="every poll is sent")
            await self._publish()
            statuses = await _all((each.answer() for each in polls), what="every poll is answered")
            back = monotonic()
            await self._fresh(pages)
        finally:
            for gone in [*(page.vanish for page in pages), *(poll.vanish for poll in polls)]:
                gone()
        taken = self._taken(since)
        wrong = sum(status != 200 for status in statuses)
        note = f"pages after {told - began:.1f} s, polls after {back - told:.1f} s, steady after {back - began:.1f} s"
        await self._closed(before, what=name)
        if name:
            self._note(Struck(name=name, began=began, back=back, taken=taken, note=note))
            if wrong:
                self.apart.wrong.append(f"{name}: {wrong} polls were not answered with 200")

    async def reset(self, polls: int) -> None:
        """So many polls, each reset while it waits."""
        name = f"{polls:,} polls are reset while they wait"
        before, began, since = open_files(self.product), monotonic(), look()
        waiting = [self._poll() for _ in range(polls)]
        await _all((each.ask() for each in waiting), what="every poll is sent")
        for each in waiting:
            each.vanish()
        gone = monotonic()
        back = await self.target.publishes_again(gone)
        await self._closed(before, what=name)
        note = (
            f"published again after {back - gone:.1f} s, everything closed after {monotonic() - gone:.1f} s"
        )
        self._note(Struck(name=name, began=began, back=back, taken=self._taken(since), note=note))

    async def hang(self, seconds: float) -> None:
        """A page that reads nothing for so long; then it is told the newest, or was cut off to come back."""
        name = f"a browser reads nothing for {seconds:g} s"
        page, other = self._page(0), self._page(0)
        await _all((page.open(), other.open()), what="the pages are told")
        began, since = monotonic(), look()
        page.stop_reading()
        await asyncio.sleep(seconds)
        if other.heard_at < monotonic() - self._taken(since).allows_s(FRESH_S):
            self.apart.wrong.append(f"{name}: another one was not told either")
        again, since = monotonic(), look()
        page.read_on()
        if page.is_shut:
            await page.open()
        await self._true(lambda: self._is_newest(page, other), what="the page shows the newest")
        back = monotonic()
        for each in (page, other):
            each.vanish()
        note = f"the newest after {back - again:.1f} s"
        taken, recovery_s = self._taken(since), back - again
        self._note(Struck(name=name, began=began, back=back, recovery_s=recovery_s, taken=taken, note=note))

    def _is_newest(self, page: Browser, other: Browser) -> bool:
        return page.heard_at > 0 and page.told["at_ms"] >= other.told["at_ms"]

    def _page(self, number: int) -> Browser:
        topic = f"stream:{STREAMS[number % len(STREAMS)]}"
        return Browser(port=self.product.port, cookie=self._cookie, topic=topic)

    def _poll(self) -> Poller:
        path = f"/streams/{WAITED}/messages?offset={self._published + 1}&wait=30"
        return Poller(port=self.product.port, token=self.product.token, path=path)

    async def _publish(self) -> None:
        message = {"id": str(self._published), "body": 1}
        await self.load.ask("POST", f"/streams/{WAITED}/messages", message)
        self._published += 1

    async def _fresh(self, pages: list[Browser]) -> None:
        """Every page is told of a stream that moves."""
        since = monotonic()
        await self._true(
            lambda: all(each.heard_at > since for each in pages), what="every page is told what is new"
        )

    async def _closed(self, before: int, *, what: str) -> None:
        """The connections of those who are gone are closed."""
        with suppress(NotBack):
            await self._true(lambda: open_files(self.product) <= before + 8, what="everything is closed")
        self.apart.left_open(before, open_files(self.product), what=what)

    async def _true(self, condition: Callable[[], bool], *, what: str) -> None:
        await self.target.wait(condition, what=what, within_s=SETTLES_WITHIN_S * busy())

    def _taken(self, since: Moment) -> Taken:
        return self.load.scene.machine.taken(since)

    def _note(self, struck: Struck) -> None:
        self.apart.struck.append(struck)
        self._say(f"  {struck.told()}")
        allowed_s, took_s = (
            struck.taken.allows_s(STEADY_WITHIN_S),
            struck.recovery_s or struck.back - struck.began,
        )
        if took_s > allowed_s:
            self.apart.wrong.append(
                f"{struck.name}: steady after {took_s:.1f} s, allowed are {allowed_s:.1f} s"
            )


async def _all(tasks: Iterable[Awaitable[T]], *, what: str) -> list[T]:
    """All of them, at once.

    Raises:
        NotBack: not within the time that a crowd may take at all.
    """
    within_s = SETTLES_WITHIN_S * busy()
    try:
        async with asyncio.timeout(within_s):
            return await asyncio.gather(*tasks)
    except TimeoutError:
        raise NotBack(f"Not within {within_s:g} s: {what}.") from None
