"""Replays: a range of the past that is published again into a stream, or brought to one group, as a job."""

from typing import ClassVar

from django.db import models

from streams.models.workspace import Workspace


class ReplayState(models.TextChoices):
    """How far a replay is. It is worked on while it is counting or running; only the last two are for good."""

    COUNTING = "counting"
    READY = "ready"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"


class WaitsFor(models.TextChoices):
    """Why a running replay brings a group nothing at present."""

    GROUP = "group"
    PAUSED_GROUP = "paused_group"


class Replay(models.Model):
    """One range of one stream's past, and how much of it was published again.

    Attributes:
        source, target: names when it was asked for; ``source_id``, ``target_id`` say which streams that was.
        group: of the source, which is the target, too; it alone gets the messages, with their own offsets. Empty: they
            are published into the target.
        generation: of the group when it was asked for (``streams.log.bringing``).
        waits_for: what it waits for while it runs; empty is nothing.
        from_offset, to_offset: what was asked for, both included; null is no bound.
        since, until: times, the second excluded.
        key: a key, or a pattern of keys; empty is any, or none.
        where: a condition in SQL on a message; empty is none.
        keeps_ids: messages keep their ids, so that the target refuses those that it knows; else they get new ones.
        rate: most messages a second.
        starts: whether it begins to publish as soon as it is counted.
        total, total_bytes, first, last: what the count found; the range is fixed from then on.
        position: the source's offset up to which everything was dealt with.
        sending_to: up to here messages may have been published that ``position`` does not have yet.
        target_offset: the target's offset of the last message that was published before those.
        stored, duplicates: messages that the target took, and that it knew; or that the group got, and that it has or
            gets without this, or does not want.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="replays")
    source = models.CharField(max_length=50)
    source_id = models.CharField(max_length=12)
    target = models.CharField(max_length=50)
    target_id = models.CharField(max_length=12)
    group = models.CharField(max_length=50, blank=True, default="", db_default="")
    generation = models.PositiveBigIntegerField(null=True)
    waits_for = models.CharField(
        max_length=12, choices=WaitsFor.choices, blank=True, default="", db_default=""
    )
    from_offset = models.PositiveBigIntegerField(null=True)
    to_offset = models.PositiveBigIntegerField(null=True)
    since = models.DateTimeField(null=True)
    until = models.DateTimeField(null=True)
    key = models.CharField(max_length=255, blank=True, default="")
    where = models.TextField(blank=True, default="")
    keeps_ids = models.BooleanField(default=True)
    rate = models.PositiveIntegerField(null=True)
    starts = models.BooleanField(default=True)
    state = models.CharField(
        max_length=10, choices=ReplayState.choices, default=ReplayState.COUNTING, db_index=True
    )
    total = models.PositiveBigIntegerField(null=True)
    total_bytes = models.PositiveBigIntegerField(null=True)
    first = models.PositiveBigIntegerField(default=0)
    last = models.PositiveBigIntegerField(default=0)
    position = models.PositiveBigIntegerField(default=0)
    sending_to = models.PositiveBigIntegerField(default=0)
    target_offset = models.PositiveBigIntegerField(default=0)
    stored = models.PositiveBigIntegerField(default=0)
    duplicates = models.PositiveBigIntegerField(default=0)
    error = models.TextField(blank=True, default="")
    requested_by = models.CharField(max_length=200)
    address = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"replay {self.pk} of {self.source} {self.goal}: {self.state}"

    @property
    def goal(self) -> str:
        """Where its messages go, in plain words."""
        return f"to group {self.group}" if self.group else f"into {self.target}"

    @property
    def progress(self) -> float:
        """0 to 1, by messages."""
        if self.state == ReplayState.SUCCEEDED:
            return 1.0
        return min(1.0, (self.stored + self.duplicates) / self.total) if self.total else 0.0
