"""Keeps why something failed only where that cannot tell what was erased."""

import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from streams.services.failures import NOT_KEPT, failures_untold


class ReasonsKept:
    """Why replays and queries failed, in words of Spark's that may tell a value, and so a body.

    Once an erasure has written the history anew, no reason is kept that the database has of that workspace, and none
    that comes later of work which had begun by then: of which messages it tells, nobody knows. What is kept is of
    messages that were read after the last erasure.
    """

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()
        self._telling = threading.Lock()

    def times(self, workspace_id: int) -> int:
        """How often something was erased in a workspace; to be asked before anything is read."""
        return self._times[workspace_id]

    def forget(self, workspace_ids: Collection[int]) -> None:
        """Something was erased in these workspaces; a reason that is just being noted is waited for."""
        with self._telling:
            self._times.update(workspace_ids)
        failures_untold(workspace_ids)

    @contextmanager
    def telling(self, reason: str, *, of: int, since: int) -> Iterator[str]:
        """Around noting a reason: it, or that it is not kept.

        Args:
            of: the workspace.
            since: what ``times`` said when the work began.
        """
        with self._telling:
            yield reason if self._times[of] == since else NOT_KEPT
