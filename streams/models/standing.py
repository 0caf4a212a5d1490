"""How groups stood over time, as Spark counted the worker's samples."""

from typing import ClassVar

from django.db import models

from streams.models.history import Step


class StandingRollup(models.Model):
    """How a group, or a stream's own position, stood in one minute, hour or day (UTC) that begins at ``start``.

    Attributes:
        group: the group's name, empty for the stream's own position.
        samples: how many this is counted from; a group at rest is not sampled.
        last_ms: unix ms of the last sample.
        deliveries, acked, redelivered, dead_lettered, lost, duplicates, removed: ever, as the last sample has them;
            null where a group or a stream has no such thing. A group made again begins at nought.
        made_ms: which life of the group or stream these are of (see ``streams.log.counts``); null where samples do not
            say it.
        grown: name → by how much each of these grew in this window, from sample to sample; null in a window that an
            earlier version began to count: there it is the difference to the window before.
        lag_max, lag_ms_max: highest values: messages not delivered yet, age of the oldest not acknowledged.
        lag_seen, lag_ms_seen: value → in how many samples it was seen (see ``spark.transforms.standing.bucket``).
        ack_ms_seen: ms from publish to acknowledgement → of how many messages acknowledged in this window (see
            ``streams.log.latency.place_of``).
        ack_ms_ever: the same of all messages that the group ever acknowledged, as the last sample has it; of days only.
        status_seen: status → in how many samples; of groups only, as what follows is, and null where samples do not say
            it or an earlier version counted them.
        dead_max: the most dead letters that there were.
        edge_ms_min: the lowest, in how many ms a limit removes the oldest message not acknowledged; null also where no
            limit was about to.
        quiet: of some samples (see ``streams.log.counts.quiet_kept``), ascending, unix ms and for how many ms nobody
            had fetched or acknowledged by then.
    """

    stream_id = models.CharField(max_length=12)
    group = models.CharField(max_length=100, blank=True, default="")
    step = models.CharField(max_length=6, choices=Step.choices)
    start = models.DateTimeField()
    samples = models.PositiveBigIntegerField()
    last_ms = models.PositiveBigIntegerField()
    deliveries = models.PositiveBigIntegerField(null=True)
    acked = models.PositiveBigIntegerField(null=True)
    redelivered = models.PositiveBigIntegerField(null=True)
    dead_lettered = models.PositiveBigIntegerField(null=True)
    lost = models.PositiveBigIntegerField(null=True)
    duplicates = models.PositiveBigIntegerField(null=True)
    removed = models.PositiveBigIntegerField(null=True)
    made_ms = models.BigIntegerField(null=True)
    grown = models.JSONField(null=True)
    lag_max = models.PositiveBigIntegerField(null=True)
    lag_ms_max = models.PositiveBigIntegerField(null=True)
    lag_seen = models.JSONField(default=dict)
    lag_ms_seen = models.JSONField(default=dict)
    ack_ms_seen = models.JSONField(default=dict, db_default={})
    ack_ms_ever = models.JSONField(null=True)
    status_seen = models.JSONField(null=True)
    dead_max = models.PositiveBigIntegerField(null=True)
    edge_ms_min = models.BigIntegerField(null=True)
    quiet = models.JSONField(null=True)

    class Meta:
        ordering: ClassVar = ["start"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["stream_id", "group", "step", "start"], name="standing_once_a_group_step_start"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["stream_id", "step", "start"], name="standing_by_start")]

    def __str__(self) -> str:
        return f"{self.stream_id} {self.group} {self.step} {self.start:%Y-%m-%d %H:%M}: {self.samples}"
