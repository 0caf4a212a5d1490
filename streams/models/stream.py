"""A stream's configuration. Its messages and counters live in the log, under ``stream_id``."""

from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Q

from streams.log import keys
from streams.models.workspace import Workspace


class Discard(models.TextChoices):
    OLD = "old"
    NEW = "new"


class Storage(models.TextChoices):
    DURABLE = "durable"
    MEMORY = "memory"


class Retention(models.TextChoices):
    LIMITS = "limits"
    INTEREST = "interest"


class Stream(models.Model):
    """One stream. Limits are None or at least 1; times are whole seconds, sizes bytes.

    Attributes:
        policy: name of the workspace's retention policy that decides the limits; empty for none.
        is_told: whether the log knows of the row as it is.
        offsets_reserved: up to it the store may have given offsets; 0 while it was never told of the stream
            (``streams.services.offsets_reserved``).
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="streams")
    name = models.CharField(max_length=50)
    stream_id = models.CharField(max_length=12, unique=True, default=keys.stream_id, editable=False)
    internal = models.BooleanField(default=False)
    storage = models.CharField(max_length=7, choices=Storage.choices, default=Storage.DURABLE, editable=False)
    policy = models.CharField(max_length=50, blank=True, default="")
    ttl = models.PositiveBigIntegerField(null=True)
    max_messages = models.PositiveBigIntegerField(null=True)
    max_bytes = models.PositiveBigIntegerField(null=True)
    max_messages_per_key = models.PositiveBigIntegerField(null=True)
    retention = models.CharField(max_length=8, choices=Retention.choices, default=Retention.LIMITS)
    discard = models.CharField(max_length=3, choices=Discard.choices, default=Discard.OLD)
    max_message_bytes = models.PositiveBigIntegerField(default=1_048_576)
    dedup_window = models.PositiveIntegerField(default=86_400)
    archive = models.BooleanField(default=True)
    deny_delete = models.BooleanField(default=False)
    deny_purge = models.BooleanField(default=False)
    sealed = models.BooleanField(default=False)
    description = models.TextField(blank=True, default="")
    labels = models.JSONField(default=dict)
    keys = models.JSONField(default=list)
    is_told = models.BooleanField(default=False)
    offsets_reserved = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="stream_name_once_a_workspace"),
            models.CheckConstraint(
                condition=Q(ttl__isnull=True) | Q(ttl__gte=1),
                name="stream_ttl_at_least_1",
            ),
            models.CheckConstraint(
                condition=Q(dedup_window__gte=1) & Q(dedup_window__lte=604_800),
                name="stream_dedup_window_1_s_to_7_days",
            ),
            models.CheckConstraint(
                condition=Q(storage=Storage.MEMORY, stream_id__startswith=keys.MEMORY_MARK)
                | (Q(storage=Storage.DURABLE) & ~Q(stream_id__startswith=keys.MEMORY_MARK)),
                name="stream_id_says_where_it_is_stored",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def age_limit(self) -> timedelta | None:
        return None if self.ttl is None else timedelta(seconds=self.ttl)
