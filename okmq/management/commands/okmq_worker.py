"""The worker process: sampling, retention, live numbers."""

import asyncio
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dashboard.live import live_feed, live_groups
from okmq.demo.feed import DemoFeed
from streams.models import Stream
from streams.services.installation import METRICS_STREAM
from streams.upkeep.worker import Worker

TICK_MAY_LAST_S = 2.0


class Command(BaseCommand):
    """Runs until SIGTERM or SIGINT."""

    help = "Sample the streams, apply retention, feed the live pages."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        worker = Worker(
            settings.ENV.redis_url,
            memory_url=settings.ENV.memory_redis_url,
            metrics_stream_id=Stream.objects.get(name=METRICS_STREAM, internal=True).stream_id,
            processes_file=settings.ENV.processes_file,
            on_samples=live_feed.publish_samples,
            on_groups=live_groups.publish_changed,
            on_processes=live_feed.publish_processes,
            on_other=live_feed.rest,
            hold_ms=1000 * settings.ENV.history_wait_s,
        )
        asyncio.run(_until_told_to_stop(worker))


async def _until_told_to_stop(worker: Worker) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    ticking = asyncio.ensure_future(worker.run())
    demo = DemoFeed()
    feeding = asyncio.ensure_future(demo.run())
    waiting = asyncio.ensure_future(told.wait())
    await asyncio.wait({ticking, waiting}, return_when=asyncio.FIRST_COMPLETED)
    worker.stop()
    demo.stop()
    # The store may have ended first, and a library may still be trying to reach it.
    _, late = await asyncio.wait({ticking, feeding}, timeout=TICK_MAY_LAST_S)
    for task in (*late, waiting):
        task.cancel()
    await asyncio.wait({ticking, feeding}, timeout=TICK_MAY_LAST_S)
