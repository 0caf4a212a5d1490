"""Named retention policies: limits that many streams share and that are changed once."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from streams.models.stream import Discard, Retention
from streams.models.workspace import Workspace

POLICY_LIMITS = ("ttl", "max_messages", "max_bytes", "max_messages_per_key", "retention", "discard")
"""The fields of a stream that its policy decides."""


class Policy(models.Model):
    """The limits of the streams whose ``policy`` is its name; they are written into each stream."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="policies")
    name = models.CharField(max_length=50)
    ttl = models.PositiveBigIntegerField(null=True)
    max_messages = models.PositiveBigIntegerField(null=True)
    max_bytes = models.PositiveBigIntegerField(null=True)
    max_messages_per_key = models.PositiveBigIntegerField(null=True)
    retention = models.CharField(max_length=8, choices=Retention.choices, default=Retention.LIMITS)
    discard = models.CharField(max_length=3, choices=Discard.choices, default=Discard.OLD)
    description = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "policies"
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="policy_name_once_a_workspace"),
            models.CheckConstraint(
                condition=Q(ttl__isnull=True) | Q(ttl__gte=1), name="policy_ttl_at_least_1"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def limits(self) -> dict[str, Any]:
        """The policy's limits by the stream's fields."""
        return {field: getattr(self, field) for field in POLICY_LIMITS}
