"""Which notification is sent next: targets do not wait for each other, and workspaces share fairly.

A target is an address of a workspace. At most one message is in flight to each. One that does not answer is left alone
ever longer, with all that waits for it; one that answers, whatever it says, is not. Who sends touches no database.
"""

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Min
from django.utils import timezone

from streams import webhooks
from streams.models import Notification
from streams.services import digests
from streams.services.notifications import (
    Attempt,
    attempt,
    attempt_begin,
    attempt_end,
    ends_withdraw,
    notifications_due,
)

MOST_AT_ONCE = 32
MOST_OF_WORKSPACE = 4
MOST_MAILS = 4
"""All mail goes through one server: one that hangs leaves room for the webhooks."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 300.0
FORGET_S = 3600.0
LOOK_AGAIN_S = 1.0
"""What becomes due while something is in flight waits no longer than that."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where messages of a workspace go; ``channel`` as ``Notification.channel``."""

    workspace_id: int
    channel: str
    address: str


@dataclass(frozen=True, slots=True)
class _Pause:
    """How often in a row a target did not answer, and until when (monotonic seconds) nothing is sent to it."""

    hung: int
    until_s: float


class Dispatcher:
    """Remembers from round to round what is in flight, and which targets do not answer."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="alerts")
        self._in_flight: dict[Future[Attempt], tuple[Target, Sequence[Notification]]] = {}
        self._pauses: dict[Target, _Pause] = {}

    def close(self) -> None:
        """Begin nothing more; what is in flight ends by itself, and is sent again by the next dispatcher."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def round(self, *, for_s: float | None = None) -> int:
        """Send what is due for so long: what is in flight then is waited for by the next round.

        Without a time what is due now, and how all of it ends is waited for.

        Returns how many messages were tried.
        """
        ends_withdraw()
        until_s = float("inf") if for_s is None else time.monotonic() + for_s
        self._pauses = {
            to: each for to, each in self._pauses.items() if time.monotonic() - each.until_s < FORGET_S
        }
        by = timezone.now() if for_s is None else None
        tried = 0
        while True:
            tried += self._begin(by)
            left_s = until_s - time.monotonic()
            if not self._in_flight or left_s <= 0:
                return tried
            done, _ = wait(self._in_flight, min(left_s, LOOK_AGAIN_S), FIRST_COMPLETED)
            for each in done:
                self._end(each)

    def _begin(self, by: datetime | None) -> int:
        """Send to each target that is free what is due, by a time or now; how many."""
        due = _due(by)
        begun = 0
        while free := [target for target in due if self._is_free(target)]:
            target = min(free, key=lambda each: (self._rank(each), due[each]))
            del due[target]
            members = _next_message(target, by)
            if members and attempt_begin(members):
                self._in_flight[self._threads.submit(attempt, members)] = target, members
                begun += 1
        return begun

    def _end(self, sent: "Future[Attempt]") -> None:
        target, members = self._in_flight.pop(sent)
        how = sent.result()
        if how.error and how.took_s >= webhooks.TIMEOUT_S / 2:
            hung = self._pauses[target].hung + 1 if target in self._pauses else 1
            self._pauses[target] = _Pause(
                hung, time.monotonic() + min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (hung - 1))
            )
        else:
            self._pauses.pop(target, None)
        attempt_end(members, how)

    def _is_free(self, target: Target) -> bool:
        under_way = [each for each, _ in self._in_flight.values()]
        pause = self._pauses.get(target)
        return (
            len(under_way) < MOST_AT_ONCE
            and target not in under_way
            and (pause is None or pause.until_s <= time.monotonic())
            and self._of_workspace(target.workspace_id) < MOST_OF_WORKSPACE
            and (target.channel != "email" or sum(each.channel == "email" for each in under_way) < MOST_MAILS)
        )

    def _rank(self, target: Target) -> tuple[int, int]:
        """Workspaces with the fewest messages in flight go first, and targets that answer."""
        pause = self._pauses.get(target)
        return self._of_workspace(target.workspace_id), 0 if pause is None else pause.hung

    def _of_workspace(self, workspace_id: int) -> int:
        return sum(each.workspace_id == workspace_id for each, _ in self._in_flight.values())


def notifications_deliver() -> int:
    """Send all that is due, and wait for how that ends. Returns how many messages were tried."""
    dispatcher = Dispatcher()
    try:
        return dispatcher.round()
    finally:
        dispatcher.close()


def _due(by: datetime | None) -> dict[Target, datetime]:
    """The targets that something is due for, and since when."""
    found: dict[Target, datetime] = {}
    to = ("alert__rule__workspace_id", "channel", "alert__rule__webhook_url", "alert__rule__email")
    for workspace_id, channel, url, email, since in (
        notifications_due(by).order_by().values_list(*to).annotate(Min("due_at"))
    ):
        target = Target(workspace_id, channel, url if channel == "webhook" else email)
        found[target] = min(since, found.get(target, since))
    return found


def _next_message(target: Target, by: datetime | None) -> Sequence[Notification]:
    """What goes in the next message to a target; nothing where the bounds of its rules hold all of it back."""
    to = "alert__rule__webhook_url" if target.channel == "webhook" else "alert__rule__email"
    of_it = {"alert__rule__workspace": target.workspace_id, "channel": target.channel, to: target.address}
    while True:
        found = notifications_due(by).filter(**of_it).select_related("alert__rule__workspace")
        first = found.order_by("due_at", "pk").first()
        if first is None:
            return ()
        until = digests.free_at(first)
        if until is None:
            return digests.together_with(first)
        digests.hold_back(first, until=until)
