"""What a group is called whose consumers fetch now and then, over many patterns of fetching and acknowledging."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from streams.health import Health, looked
from streams.verdicts import EVERY_MS, Sample, Status

START_S = 1_000_000
EVERY_S = EVERY_MS // 1000
FOR_S = 1700
EVERY_SO_OFTEN = (5, 10, 30, 45, 50, 55, 60, 65, 70, 90, 110, 130, 150, 200)


@dataclass(kw_only=True)
class Group:
    """A group second by second: messages in the order of their offsets, each with when it was handed out last.

    Args:
        rate: messages published a second; all that waited for a fetch come right before it where ``is_on_time``.
        batch: how many a fetch takes at most.
        fetches: seconds from the beginning at which somebody fetches, ascending.
        ack_after_s: how long a batch is worked on, of those that are acknowledged; None for never.
        is_acked: whether the batch of this number is, and which share of it.
        commit_every_s: instead, all that is in flight is acknowledged so often.
    """

    batch: int
    rate: float = 1.0
    is_on_time: bool = False
    fetches: Iterator[int]
    ack_wait_s: int = 1800
    ack_after_s: int | None = None
    share: Callable[[int], float] = lambda batch: 1.0
    commit_every_s: int | None = None
    published: int = 0
    delivered: int = 0
    deliveries: int = 0
    redelivered: int = 0
    acked: int = 0
    fetched_s: int = START_S
    acked_s: int = 0
    batches: int = 0
    out: dict[int, int] = field(default_factory=dict)
    due: list[tuple[int, list[int]]] = field(default_factory=list)

    def step(self, at_s: int, *, is_fetched: bool) -> None:
        if is_fetched or not self.is_on_time:
            self.published = int(self.rate * (at_s - START_S))
        ready = [each for each in self.due if each[0] <= at_s]
        self.due = [each for each in self.due if each[0] > at_s]
        for _, offsets in ready:
            self._ack(offsets, at_s)
        if self.commit_every_s and (at_s - START_S) % self.commit_every_s == 0:
            self._ack(list(self.out), at_s)
        if is_fetched:
            self._fetch(at_s)

    def _fetch(self, at_s: int) -> None:
        self.fetched_s = at_s
        again = [each for each, out_s in self.out.items() if at_s - out_s >= self.ack_wait_s][: self.batch]
        fresh = range(self.delivered, min(self.published, self.delivered + self.batch - len(again)))
        self.delivered += len(fresh)
        self.redelivered += len(again)
        taken = [*again, *fresh]
        if not taken:
            return
        self.deliveries += len(taken)
        self.out |= dict.fromkeys(taken, at_s)
        self.batches += 1
        if self.ack_after_s is not None:
            answered = taken[: round(len(taken) * self.share(self.batches))]
            self.due.append((at_s + self.ack_after_s, answered))

    def _ack(self, offsets: list[int], at_s: int) -> None:
        answered = [each for each in offsets if self.out.pop(each, None) is not None]
        if answered:
            self.acked, self.acked_s = self.acked + len(answered), at_s

    def sample(self, at_s: int) -> Sample:
        return Sample(
            at_ms=at_s * 1000,
            lag=self.published - self.delivered,
            pending=len(self.out),
            held=sum(at_s - out_s < self.ack_wait_s for out_s in self.out.values()),
            floor=min(self.out, default=self.delivered),
            deliveries=self.deliveries,
            acked=self.acked,
            redelivered=self.redelivered,
            dead=0,
            removed=0,
            polls=0,
            fetched_ms=self.fetched_s * 1000,
            acked_ms=self.acked_s * 1000,
            lag_ms=int(1000 * (at_s - START_S - min(self.out, default=self.delivered) / self.rate)),
        )


def statuses(group: Group, *, for_s: int = FOR_S) -> list[tuple[int, Status]]:
    """Seconds from the beginning, and the status that is shown then, look by look."""
    told: list[tuple[int, Status]] = []
    health: Health | None = None
    due_s = next(group.fetches)
    for second in range(1, for_s):
        is_fetched = second >= due_s
        group.step(START_S + second, is_fetched=is_fetched)
        if is_fetched:
            due_s = next(group.fetches)
        if second % EVERY_S == 0:
            health = looked(health, group.sample(START_S + second))
            told.append((second, health.verdict.status))
    return told


def every(seconds: int) -> Iterator[int]:
    return iter(range(seconds, FOR_S + 2 * seconds, seconds))


def at_random(seed: int) -> Iterator[int]:
    drawn, at_s = random.Random(seed), 0
    while True:
        at_s += drawn.randint(5, 200)
        yield at_s


def in_bursts() -> Iterator[int]:
    """Five fetches, ten seconds apart, then nothing for almost two minutes."""
    return iter([start + 10 * n for start in range(10, FOR_S + 200, 150) for n in range(5)])


CAME = [("while nobody fetches", "all"), ("while nobody fetches", "half"), ("on time", "all")]
"""When messages are published, and how many a fetch takes; with half of them more and more wait."""


def group(came: str, taken: str, fetches: Iterator[int], **fixed: object) -> Group:
    batch = 100_000 if taken == "all" else 3
    return Group(batch=batch, is_on_time=came == "on time", fetches=fetches, **fixed)  # type: ignore[arg-type]


@pytest.mark.parametrize(("came", "taken"), CAME)
@pytest.mark.parametrize("ack_wait_s", [30, 100, 1800])
@pytest.mark.parametrize("every_s", EVERY_SO_OFTEN)
def test_who_acknowledges_nothing_is_stalled_and_stays_so(
    every_s: int, ack_wait_s: int, came: str, taken: str
) -> None:
    """Once it was handed something three times and over two and a half minutes, however often it fetches."""
    told = statuses(group(came, taken, every(every_s), ack_wait_s=ack_wait_s))
    from_s = every_s + max(2 * every_s, 140 + every_s) + 2 * EVERY_S
    assert {status for at_s, status in told if at_s > from_s} == {"stalled"}


@pytest.mark.parametrize("seed", [None, *range(12)])
@pytest.mark.parametrize("ack_wait_s", [30, 1800])
def test_nor_does_it_help_to_fetch_at_odd_times(seed: int | None, ack_wait_s: int) -> None:
    fetches = in_bursts() if seed is None else at_random(seed)
    """Where what goes out again is due and nobody comes for it, it is said to be stopped until somebody does."""
    told = statuses(group("on time", "all", fetches, ack_wait_s=ack_wait_s))
    others = {"stopped"} if ack_wait_s == 30 else set()
    assert {status for at_s, status in told if at_s > 900} - others == {"stalled"}


SOME: dict[str, Callable[[int], float]] = {
    "all": lambda batch: 1.0,
    "half of each batch": lambda batch: 0.5,
    "every third batch": lambda batch: float(batch % 3 == 0),
}


@pytest.mark.parametrize(("came", "taken"), CAME)
@pytest.mark.parametrize("share", SOME)
@pytest.mark.parametrize("after_s", [0, 40, 100, 900])
@pytest.mark.parametrize("every_s", EVERY_SO_OFTEN)
def test_who_acknowledges_is_not_stalled_for_how_often_or_how_much(
    every_s: int, after_s: int, share: str, came: str, taken: str
) -> None:
    """Until something was acknowledged twice nobody knows how long that usually takes."""
    told = statuses(group(came, taken, every(every_s), ack_after_s=after_s, share=SOME[share]))
    n = 6 if share == "every third batch" else 2
    known_s = after_s + n * every_s + 4 * EVERY_S
    assert "stalled" not in {status for at_s, status in told if at_s > known_s}


@pytest.mark.parametrize(("came", "taken"), CAME)
@pytest.mark.parametrize("share", ["all", "half of each batch"])
@pytest.mark.parametrize("every_s", EVERY_SO_OFTEN)
@pytest.mark.parametrize("after_s", [0, 30, 50, 90, 130])
def test_nor_at_the_beginning_where_the_first_jobs_take_no_longer_than_that(
    every_s: int, after_s: int, share: str, came: str, taken: str
) -> None:
    """Two and a half minutes, or one where more waits all the time."""
    told = statuses(group(came, taken, every(every_s), ack_after_s=after_s, share=SOME[share]))
    if after_s <= 50 or taken == "all":
        assert "stalled" not in {status for _, status in told}


@pytest.mark.parametrize("commit_every_s", [60, 150, 300, 600])
@pytest.mark.parametrize("every_s", [5, 10, 30, 65, 90])
def test_who_acknowledges_everything_every_few_minutes_is_not(every_s: int, commit_every_s: int) -> None:
    told = statuses(group("on time", "all", every(every_s), commit_every_s=commit_every_s))
    assert "stalled" not in {status for at_s, status in told if at_s > 2 * commit_every_s + 3 * EVERY_S}


@pytest.mark.parametrize("jobs", [1, 2])
def test_long_jobs_alone_are_not(jobs: int) -> None:
    told = statuses(group("on time", "all", iter([30 * n for n in range(1, jobs + 1)] + [FOR_S])))
    assert {status for _, status in told} == {"unknown", "ok"}


def test_many_long_jobs_are_until_the_first_of_all_is_done_or_nothing_more_was_taken_for_long() -> None:
    told = statuses(group("on time", "all", iter([*range(10, 180, 20), FOR_S])))
    assert "stalled" in {status for at_s, status in told if at_s < 180}
    assert {status for at_s, status in told if at_s > 180 + 140 + 3 * EVERY_S} == {"ok"}
