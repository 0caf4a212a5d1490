"""What Spark computed, and the runs that computed it."""

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from django.db import models


class RunState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Job(models.TextChoices):
    ARCHIVE = "archive"
    ROLLUP = "rollup"
    COMPACT = "compact"


class Run(models.Model):
    """One run of one job.

    Attributes:
        progress: from 0 to 1.
        counts: what the job counted.
        stages, stages_done, tasks, tasks_done: of Spark's, as far as it has planned them.
    """

    job = models.CharField(max_length=20, choices=Job.choices)
    state = models.CharField(max_length=20, choices=RunState.choices, default=RunState.QUEUED, db_index=True)
    progress = models.FloatField(default=0.0)
    counts = models.JSONField(default=dict)
    stages = models.PositiveIntegerField(default=0, db_default=0)
    stages_done = models.PositiveIntegerField(default=0, db_default=0)
    tasks = models.PositiveIntegerField(default=0, db_default=0)
    tasks_done = models.PositiveIntegerField(default=0, db_default=0)
    error = models.TextField(blank=True, default="")
    requested_by = models.CharField(max_length=200, default="schedule")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.job} run {self.pk}: {self.state}"


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Step(models.TextChoices):
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        return {Step.MINUTE: timedelta(minutes=1), Step.HOUR: timedelta(hours=1)}.get(self, timedelta(days=1))

    def floor(self, moment: datetime) -> datetime:
        """Where the step (UTC) begins that a moment lies in."""
        return EPOCH + (moment - EPOCH) // self.length * self.length

    def ceil(self, moment: datetime) -> datetime:
        """Where the step ends that a moment lies in, or the moment where one begins; the end of time is one."""
        begin = self.floor(moment)
        is_last = datetime.max.replace(tzinfo=UTC) - begin < self.length
        return moment if begin == moment or is_last else begin + self.length


class Rollup(models.Model):
    """What one stream published in one minute, hour or day (UTC) that begins at ``start``.

    Messages and bytes are sums, which grow with what comes. The others are of the window as a whole, which is looked at
    anew now and then while it grows, and for the last time once it is over; null until the first time.

    Attributes:
        looked_at: how many messages were counted into it when it was looked at last.
        scanned: how many of these were there to look at: fewer where some had been erased; null of a look by a version
            before.
        look_run, look_time: which run looked at it last, and when; null likewise, and once a look was forgotten. Of a
            minute the run is null, too, once it is no longer kept.
        first_offset, last_offset: lowest and highest offset.
        missing: offsets up to the last that the history does not have, from the first on, and once all of the window
            before is looked at, from behind that one's last.
        ids, keys: distinct ones.
        size_p50, size_p90, size_p99, size_max: bytes of a body.
        top_keys: ``[key, messages]``, the most frequent first.
        bodies, unreadable: of a day, bodies that are JSON objects, and those of them that could not be taken apart.
        fields: of a day, ``{name, present, types}`` of the fields of these objects, the most frequent first.
    """

    stream_id = models.CharField(max_length=12)
    step = models.CharField(max_length=6, choices=Step.choices)
    start = models.DateTimeField()
    messages = models.PositiveBigIntegerField()
    bytes = models.PositiveBigIntegerField()
    looked_at = models.PositiveBigIntegerField(default=0)
    scanned = models.PositiveBigIntegerField(null=True)
    look_run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, related_name="+")
    look_time = models.DateTimeField(null=True)
    first_offset = models.PositiveBigIntegerField(null=True)
    last_offset = models.PositiveBigIntegerField(null=True)
    missing = models.PositiveBigIntegerField(null=True)
    ids = models.PositiveBigIntegerField(null=True)
    keys = models.PositiveBigIntegerField(null=True)
    size_p50 = models.PositiveBigIntegerField(null=True)
    size_p90 = models.PositiveBigIntegerField(null=True)
    size_p99 = models.PositiveBigIntegerField(null=True)
    size_max = models.PositiveBigIntegerField(null=True)
    top_keys = models.JSONField(null=True)
    bodies = models.PositiveBigIntegerField(null=True)
    unreadable = models.PositiveBigIntegerField(null=True)
    fields = models.JSONField(null=True)
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True)

    class Meta:
        ordering: ClassVar = ["start"]
        indexes: ClassVar = [
            models.Index(
                fields=["start"],
                condition=models.Q(looked_at__lt=models.F("messages")),
                name="rollup_to_look_at",
            )
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["stream_id", "step", "start"],
                name="rollup_once_a_stream_step_start",
            )
        ]

    def __str__(self) -> str:
        return f"{self.stream_id} {self.step} {self.start:%Y-%m-%d %H:%M}: {self.messages}"

    @property
    def messages_scanned(self) -> int:
        """What its figures of the window as a whole are from."""
        return self.looked_at if self.scanned is None else self.scanned

    @property
    def messages_unscanned(self) -> int:
        """What has been counted into it since it was looked at."""
        return max(0, self.messages - self.looked_at)

    @property
    def frequent_keys(self) -> list[dict[str, Any]] | None:
        """``top_keys`` with names."""
        if self.top_keys is None:
            return None
        return [{"key": key, "messages": messages} for key, messages in self.top_keys]


class RollupPosition(models.Model):
    """Up to which offset a stream's archived messages are in the rollups; moves with them in one transaction."""

    stream_id = models.CharField(max_length=12, unique=True)
    offset = models.PositiveBigIntegerField(default=0)
    fresh_to = models.DateTimeField(null=True)
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True)

    def __str__(self) -> str:
        return f"{self.stream_id} up to {self.offset}"
