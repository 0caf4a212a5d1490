"""Replays without the threads that hand them out: asked for, and worked on in the test's own."""

from dataclasses import dataclass
from typing import Any

from okmq.analytics.process import Analytics
from okmq.analytics.replays import Replays
from streams.access import SYSTEM, Caller
from streams.log import append
from streams.log.entries import NewMessage
from streams.models import Erasure, Replay, Stream, Workspace
from streams.services import replays as service
from tests.okmq.analytics.working import due
from tests.spark.published import Published
from tests.waiting import until


@dataclass
class Here:
    """A workspace that the database knows, with a history of its own."""

    published: Published
    workspace: Workspace
    analytics: Analytics

    @property
    def replays(self) -> Replays:
        return self.analytics.replays

    @property
    def caller(self) -> Caller:
        return Caller(self.workspace, frozenset({"admin"}), SYSTEM)

    def stream(self, name: str, *, keys: tuple[str, ...] = (), **settings: Any) -> str:
        stream_id = self.published.stream(name, **settings)
        Stream.objects.create(workspace=self.workspace, name=name, stream_id=stream_id, keys=list(keys))
        return stream_id

    def archive(self) -> None:
        due(self.analytics)

    def asked(self, source: str, target: str, **wanted: Any) -> Replay:
        wanted_ = service.ReplayWanted(**wanted)
        return service.replay_request(self.caller, source=source, target=target, wanted=wanted_)

    def worked(self, replay: Replay) -> Replay:
        replay.refresh_from_db()
        self.replays.work(replay)
        replay.refresh_from_db()
        return replay

    def erased(self, name: str, stream_id: str, **wanted: Any) -> Erasure:
        """An erasure from a stream's history, done in the test's own thread."""
        erasure = Erasure.objects.create(
            workspace=self.workspace, stream=name, stream_id=stream_id, requested_by="somebody", **wanted
        )
        assert self.analytics.lanes[0].step()
        erasure.refresh_from_db()
        return erasure

    def forgets(self, probe: str) -> None:
        """Wait until a stream with the shortest window, and so each like it, knows no id of before."""
        again = [NewMessage(id="probe", body=b"1")]
        self.published.publish(probe, again)
        until(
            lambda: not self.published.log.run(append.append(probe, again))[0].duplicate,
            what="the ids are forgotten",
        )

    def messages(self, stream_id: str) -> list[tuple[Any, ...]]:
        """id, key, headers, body of what stands in a stream, in offset order."""
        return [row[3:7] for row in self.published.stored(stream_id)]
