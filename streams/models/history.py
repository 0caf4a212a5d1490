"""What Spark computed, and the runs that computed it."""

from typing import ClassVar

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
    """One run of one job. ``progress`` goes from 0 to 1; ``counts`` is what the job counted."""

    job = models.CharField(max_length=20, choices=Job.choices)
    state = models.CharField(max_length=20, choices=RunState.choices, default=RunState.QUEUED, db_index=True)
    progress = models.FloatField(default=0.0)
    counts = models.JSONField(default=dict)
    error = models.TextField(blank=True, default="")
    requested_by = models.CharField(max_length=200, default="schedule")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.job} run {self.pk}: {self.state}"


class Step(models.TextChoices):
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


class Rollup(models.Model):
    """Messages and bytes of one stream in one minute, hour or day (UTC) that begins at ``start``."""

    stream_id = models.CharField(max_length=12)
    step = models.CharField(max_length=6, choices=Step.choices)
    start = models.DateTimeField()
    messages = models.PositiveBigIntegerField()
    bytes = models.PositiveBigIntegerField()
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True)

    class Meta:
        ordering: ClassVar = ["start"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["stream_id", "step", "start"],
                name="rollup_once_a_stream_step_start",
            )
        ]

    def __str__(self) -> str:
        return f"{self.stream_id} {self.step} {self.start:%Y-%m-%d %H:%M}: {self.messages}"


class RollupPosition(models.Model):
    """Up to which offset a stream's archived messages are in the rollups; moves with them in one transaction."""

    stream_id = models.CharField(max_length=12, unique=True)
    offset = models.PositiveBigIntegerField(default=0)
    fresh_to = models.DateTimeField(null=True)
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True)

    def __str__(self) -> str:
        return f"{self.stream_id} up to {self.offset}"
