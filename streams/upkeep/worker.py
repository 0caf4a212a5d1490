"""The worker: samples, sweeps and notes what happened, once a second. One at a time; another takes over in 5 s."""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections
from django.utils import timezone

from streams import selectors
from streams.log import config, damages, keys, lease, memory, notes, standing, stats
from streams.log.client import AsyncLog, Op, Reachable, Steady, one
from streams.log.config import Registered
from streams.log.errors import Damaged, LogError, StoreFull, StoreUnavailable
from streams.log.keys import GroupName
from streams.services import (
    chain_checks,
    dispatch,
    erasures,
    group_repairs,
    history,
    installation,
    queries,
    replays,
    replays_old,
    shared_repairs,
    stream_repairs,
)
from streams.services import group_losses as losses_recorded
from streams.services import offsets_reserved as reserved
from streams.services import removals as removals_recorded
from streams.services import upkeep as records
from streams.upkeep import (
    acks,
    alerting,
    losses,
    processes,
    promotions,
    removals,
    retention,
    sampling,
    watching,
)
from streams.upkeep.damages import Damages
from streams.upkeep.processes import ProcessStatus
from streams.upkeep.sampling import Sample
from streams.upkeep.watching import Watched

TICK_S = 1.0
LEASE_MS = 4_000
TOKENS_EVERY_S = 5.0
GROUPS_EVERY_S = 2.0
REPAIRS_EVERY_S = 4.0
ALERTS_EVERY_S = 2.0
FORGET_EVERY_S = 60.0
DISPATCH_S = 5.0
MEMORY_ANSWERS_S = 1.0
"""So long each tick waits for the server of the streams in memory, before it goes on without them."""
CHAIN_EVERY_S = 10.0

OnSamples = Callable[[Sequence[Sample]], Awaitable[None]]
OnGroups = Callable[[Sequence[str]], Awaitable[None]]
OnProcesses = Callable[[Sequence[ProcessStatus]], Awaitable[None]]

log = logging.getLogger(__name__)


class Worker:
    """Ticks until ``stop`` is called.

    Args:
        url, memory_url: the log's servers.
        metrics_stream_id: the system's own stream, where samples go.
        processes_file: what the supervisor writes; restarts in it become events.
        on_samples, on_processes: told what the live pages show; of each round of samples, also where nothing changed.
        on_groups: told the ids of streams whose groups may stand differently.
        on_other: called each second in which another worker works.
        hold_ms: how long what retention removed waits for the history at most; None is an hour.
    """

    def __init__(
        self,
        url: str,
        *,
        memory_url: str | None = None,
        metrics_stream_id: str,
        processes_file: Path,
        on_samples: OnSamples,
        on_groups: OnGroups,
        on_processes: OnProcesses,
        on_other: Callable[[], None],
        hold_ms: int | None = None,
    ) -> None:
        self._log = AsyncLog(url, memory_url=memory_url, keeps_clock=True)
        self._has_memory, self._memory_answers = memory_url is not None, True
        self._owner = secrets.token_hex(8)
        self._metrics_stream_id = metrics_stream_id
        self._processes_file = processes_file
        self._on_samples, self._on_groups, self._on_processes = on_samples, on_groups, on_processes
        self._on_other = on_other
        self._sampler = sampling.Sampler(self._log)
        self._round, self._hold_ms = retention.Round(), hold_ms
        self._unfinished: set[str] = set()
        self._paces = retention.Paces()
        self._removals = removals.Removals()
        self._watch = watching.Watch(self._log)
        self._losses, self._suspects = losses.Losses(), losses.Suspects()
        self._acks, self._alerting = acks.Acks(), alerting.Alerting()
        self._damages, self._promotions = Damages(), promotions.Promotions(self._log)
        self._dispatcher = dispatch.Dispatcher()
        self._telling: asyncio.Task[None] | None = None
        self._restarts: dict[str, int] = {}
        self._processes: list[ProcessStatus] = []
        self._tokens_at = self._groups_at = self._chain_at = self._told_at = 0.0
        self._repaired_at = self._forgotten_at = 0.0
        self._reservations, self._is_loss_told = reserved.Reservations(), False
        self._sampled_ms: int | None = None
        self._complained = False
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Tick until told to stop; a store that does not answer is waited for."""
        try:
            while not self._stopped.is_set():
                started = time.monotonic()
                try:
                    if await self._log.run(self._hold()):
                        await self._tick()
                    else:
                        self._on_other()
                    self._complained = False
                except Damaged as error:
                    self._damages.meet([error])
                    await self._mend_shared()
                except LogError as error:
                    if not self._complained:
                        log.warning("The store does not answer: %s", error)
                    self._complained = True
                except Exception:
                    log.exception("A tick of the worker failed; the next one follows.")
                with contextlib.suppress(TimeoutError):
                    left = TICK_S - (time.monotonic() - started)
                    await asyncio.wait_for(self._stopped.wait(), max(0.05, left))
        finally:
            self._dispatcher.close()
            try:
                await self._log.run(lease.worker_release(self._owner, sampled_ms=self._sampled_ms))
            except LogError as error:
                log.warning("The lease is left to end by itself: %s", error)
            await self._log.close()

    def _hold(self) -> Op[bool]:
        return lease.worker_hold(self._owner, for_ms=LEASE_MS, sampled_ms=self._sampled_ms)

    def stop(self) -> None:
        """Let the tick under way be the last. Cancelling could be lost in a call to the database."""
        self._stopped.set()

    async def _tick(self) -> None:
        passed_over = self._damages.passed_over
        with passed_over():
            await self._log.run(one(Steady()))  # notes a jump of the server's clock within a second
        with passed_over():
            await self._promotions.look()
        at_ms = int(time.time() * 1000)
        answers = self._has_memory and await self._fill_memory()
        samples: list[Sample] = []
        with passed_over():
            samples = await self._sample(at_ms=at_ms, with_memory=answers)
        self._sampled_ms = at_ms
        await self._watch_processes()
        registered = await self._sampler.registered()
        there = set(await self._log.run(one(Reachable(list(registered)))))
        reachable = [each for each in registered if each in there and (answers or not keys.in_memory(each))]
        with passed_over():
            await self._tend(samples, registered, reachable)
        if any(not each.stream_id for each in self._damages.lately()):
            await self._mend_shared()
        with passed_over():
            await self._record_removals(samples, with_memory=answers)
        self._watch.changed(sample.stream_id for sample in samples)
        with passed_over():
            await self._watch_groups(samples, registered, reachable, at_ms=at_ms)
        if self._groups_at < time.monotonic() - GROUPS_EVERY_S:
            self._groups_at = time.monotonic()
            with passed_over():
                await sync_to_async(records.groups_remove_inactive)(with_memory=answers)
            await self._refuse_runs()
        if self._forgotten_at < time.monotonic() - FORGET_EVERY_S:
            self._forgotten_at = time.monotonic()
            await sync_to_async(queries.queries_forget)()
            await sync_to_async(replays_old.replays_forget)(now=timezone.now())
        if self._repaired_at < time.monotonic() - REPAIRS_EVERY_S:
            self._repaired_at = time.monotonic()
            await self._repair(registered, reachable, with_memory=answers)
        if self._chain_at < time.monotonic() - CHAIN_EVERY_S:
            self._chain_at = time.monotonic()
            with passed_over():
                await sync_to_async(chain_checks.chain_check_step)()
        with passed_over():
            await sync_to_async(self._alerting.look)(with_memory=answers)
        if self._told_at < time.monotonic() - ALERTS_EVERY_S:
            self._told_at = time.monotonic()
            self._tell_alerts()
        if self._tokens_at < time.monotonic() - TOKENS_EVERY_S:
            self._tokens_at = time.monotonic()
            with passed_over():
                await self._note_tokens()

    async def _sample(self, *, at_ms: int, with_memory: bool) -> list[Sample]:
        """How the streams that changed stand; told to the pages and written down."""
        samples = await self._sampler.sample(at_ms=at_ms, with_memory=with_memory)
        shown = [sample for sample in samples if sample.stream_id != self._metrics_stream_id]
        await self._on_samples(shown)
        if samples:
            await sync_to_async(self._reservations.keep_ahead)(
                {each.stream_id: each.offset for each in samples}
            )
        if shown:
            with self._damages.passed_over():
                await sampling.record(self._log, self._metrics_stream_id, shown, at_ms=at_ms)
            held = {
                each.stream_id: memory.Held(each.messages, each.unarchived)
                for each in shown
                if keys.in_memory(each.stream_id)
            }
            with self._damages.passed_over():
                await self._log.run(memory.held_set(held))
        return samples

    async def _tend(
        self, samples: Sequence[Sample], registered: Mapping[str, Registered], reachable: Sequence[str]
    ) -> None:
        """Apply the limits of the streams whose turn it is, and look whether what is held of them can be read."""
        share = self._round.next(list(registered))
        turn = {*share, *(sample.stream_id for sample in samples if sample.is_to_tend), *self._unfinished}
        tended = sorted(turn & set(reachable))
        done = await retention.tend(self._log, tended, hold_ms=self._hold_ms, paces=self._paces)
        self._unfinished = done.unfinished
        self._damages.meet(done.damaged)
        if done.full is not None:
            self._damages.meet_full(done.full)
        self._damages.meet(await self._log.run(damages.look(sorted(set(share) & set(reachable)))))
        await self._log.run(damages.note(self._damages.lately()))
        if done.is_one_lost:
            # One was made while its server did not answer: the next tick begins it.
            await self._log.run(memory.filled_set(""))

    async def _watch_groups(
        self,
        samples: Sequence[Sample],
        registered: Mapping[str, Registered],
        reachable: Sequence[str],
        *,
        at_ms: int,
    ) -> None:
        """How the groups stand whose turn it is, and what they lost."""
        counters = await self._watch.retire(reachable)
        self._sampler.acked = self._acks.look(counters, at_s=time.monotonic())
        shown = {each.stream_id for each in samples if each.stream_id != self._metrics_stream_id}
        moved = shown & self._watch.with_groups
        watched = await self._watch.look(reachable, away=registered.keys() - set(reachable))
        self._damages.meet(self._watch.damaged)
        with self._damages.passed_over():
            await watching.record(self._log, self._metrics_stream_id, watched, at_ms=at_ms)
        await self._on_groups(sorted(moved | {each.stream_id for each in watched}))
        await self._record_losses(watched, self._suspects.next(counters, samples))

    async def _repair(
        self, registered: Mapping[str, Registered], reachable: Sequence[str], *, with_memory: bool
    ) -> None:
        """Have the log hold what the database does."""
        with self._damages.passed_over():
            await sync_to_async(self._note_loss)()
        with self._damages.passed_over():
            await sync_to_async(stream_repairs.streams_repair)(with_memory=with_memory)
        with self._damages.passed_over():
            await sync_to_async(stream_repairs.leftovers_remove)(registered.values(), with_memory=with_memory)
        with self._damages.passed_over():
            await sync_to_async(group_repairs.groups_repair)(reachable)

    async def _mend_shared(self) -> None:
        """Something that all streams go by could not be read: it is taken away, and told again where it was told."""
        try:
            await sync_to_async(installation.another_database_refuse)()
            if await sync_to_async(shared_repairs.shared_repair)():
                await sync_to_async(installation.configuration_republish)()
        except (LogError, DatabaseError, installation.AnotherDatabase) as error:
            log.warning("What all streams go by cannot be put right: %s", error)

    async def _note_tokens(self) -> None:
        used = await self._log.run(config.take_tokens_used())
        if used:
            await sync_to_async(records.tokens_note_used)(used)

    def _tell_alerts(self) -> None:
        """Let what is due be told beside the ticks: a receiver that is slow holds nothing up."""
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(_deliver(self._dispatcher))

    def _note_loss(self) -> None:
        """Record once that the store was emptied, and again when that happens again."""
        is_lost = selectors.is_store_emptied()
        if is_lost and not self._is_loss_told:
            reserved.loss_note()
        self._is_loss_told = is_lost

    async def _fill_memory(self) -> bool:
        """Begin what the memory server has lost; whether it answers. Without it the durable streams go on."""
        try:
            _, is_filled = await asyncio.wait_for(self._log.run(memory.life()), MEMORY_ANSWERS_S)
            if not is_filled:
                begun = await sync_to_async(records.memory_fill)()
                self._sampler.forget(begun)
                self._alerting.forget(begun)
        except StoreFull as error:  # it is there, and what follows makes room on it
            self._memory_answers = True
            self._damages.meet_full(error)
        except (StoreUnavailable, TimeoutError) as error:
            if self._memory_answers:
                log.warning(
                    "The server of the streams in memory does not answer: %s", str(error) or "it hangs"
                )
            self._memory_answers = False
        else:
            self._memory_answers = True
        return self._memory_answers

    async def _refuse_runs(self) -> None:
        """Nobody waits for what cannot come: the supervisor says why there is no analytics process."""
        for process in self._processes:
            if process.name == "analytics" and process.state in ("unavailable", "off"):
                reason = process.note or "The analytics process is not running."
                await sync_to_async(history.runs_refuse)(reason=reason)
                await sync_to_async(queries.queries_refuse)(reason=reason)
                await sync_to_async(replays.replays_refuse)(reason=reason)
                await sync_to_async(erasures.erasures_refuse)(reason=reason)

    async def _record_removals(self, samples: Sequence[Sample], *, with_memory: bool) -> None:
        """Events of what went: from notes what people took away, the rest of what is gone as retention's."""
        due = [each for each in self._removals.due(samples) if with_memory or not keys.in_memory(each)]
        states = await self._log.run(stats.inspect_many(due))
        self._removals.forget(set(due) - states.keys())
        with self._damages.passed_over():
            await self._log.run(notes.give_up())
        left = await self._log.run(notes.take())
        if left:
            await sync_to_async(removals_recorded.notes_record)(left)
            await self._log.run(notes.forget(left[-1][0]))
        if states and len(left) < notes.AT_ONCE:
            self._removals.settled(states, await sync_to_async(removals_recorded.removals_record)(states))

    async def _record_losses(self, watched: Sequence[Watched], suspects: Sequence[GroupName]) -> None:
        states = {(each.stream_id, each.name): each.state for each in watched}
        fresh = [named for named in suspects if named not in states]
        states |= await self._log.run(standing.inspect_these(fresh))
        self._suspects.looked(states)
        due = self._losses.due(states)
        if due:
            self._losses.settled(due, await sync_to_async(losses_recorded.group_losses_record)(due))

    async def _watch_processes(self) -> None:
        found = await asyncio.to_thread(processes.read, self._processes_file)
        if found == self._processes:
            return
        self._processes = found
        for process in found:
            if process.restarts > self._restarts.get(process.name, process.restarts):
                await sync_to_async(records.process_restarted)(process.name, note=process.note)
            self._restarts[process.name] = process.restarts
        await self._on_processes(found)


async def _deliver(dispatcher: dispatch.Dispatcher) -> None:
    try:
        await sync_to_async(_deliver_now, thread_sensitive=False)(dispatcher)
    except Exception:
        log.exception("Alerts could not be told; they are tried again.")


def _deliver_now(dispatcher: dispatch.Dispatcher) -> None:
    """In a thread of its own, whose connection to the database ends with it."""
    try:
        dispatcher.round(for_s=DISPATCH_S)
    finally:
        connections.close_all()
