"""A consumer group's configuration. Its position and what is in flight live in the log, under its name."""

from typing import ClassVar

from django.db import models

from streams.log.groups import Settings
from streams.models.stream import Stream


class StartFrom(models.TextChoices):
    EARLIEST = "earliest"
    LATEST = "latest"
    LAST = "last"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"


class Ack(models.TextChoices):
    EXPLICIT = "explicit"
    ALL = "all"
    NONE = "none"


class Group(models.Model):
    """One group (JetStream: a durable pull consumer). Waits are seconds, fractions allowed.

    Attributes:
        begins_after: the offset up to which everything counted as delivered when it was made.
        is_told: whether the log knows of the row as it is.
    """

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="groups")
    name = models.CharField(max_length=50)
    start_from = models.CharField(max_length=9, choices=StartFrom.choices, default=StartFrom.EARLIEST)
    start_offset = models.PositiveBigIntegerField(null=True)
    start_timestamp = models.DateTimeField(null=True)
    ack = models.CharField(max_length=8, choices=Ack.choices, default=Ack.EXPLICIT)
    ack_wait = models.FloatField(default=30.0)
    max_deliver = models.IntegerField(default=5)
    backoff = models.JSONField(default=list)
    max_ack_pending = models.PositiveIntegerField(default=1000)
    filter_keys = models.JSONField(default=list)
    ordered_by_key = models.BooleanField(default=False)
    begins_after = models.PositiveBigIntegerField(default=0)
    is_told = models.BooleanField(default=False)
    inactive_after = models.FloatField(null=True)
    description = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["stream", "name"], name="group_name_once_a_stream"),
            models.CheckConstraint(
                condition=models.Q(ack_wait__gte=0.1), name="group_ack_wait_at_least_100_ms"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stream}/{self.name}"

    @property
    def log_settings(self) -> Settings:
        """What the log must know of it."""
        return Settings(
            ack=self.ack,
            ack_wait_ms=round(self.ack_wait * 1000),
            max_deliver=self.max_deliver,
            backoff_ms=tuple(round(wait * 1000) for wait in self.backoff),
            max_ack_pending=self.max_ack_pending,
            filter_keys=tuple(self.filter_keys),
            ordered_by_key=self.ordered_by_key,
        )
