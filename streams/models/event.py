"""What happened: who did it, when, from where, before and after."""

from typing import ClassVar

from django.db import models

from streams.models.workspace import Workspace


class Event(models.Model):
    """One thing that a person, a token or the system did. Never changed once written."""

    time = models.DateTimeField(auto_now_add=True, db_index=True)
    kind = models.CharField(max_length=50)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="events", null=True)
    stream = models.CharField(max_length=50, blank=True, default="")
    group = models.CharField(max_length=50, blank=True, default="")
    actor = models.CharField(max_length=200)
    address = models.CharField(max_length=64, blank=True, default="")
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    summary = models.TextField()

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [models.Index(fields=["workspace", "stream", "-id"], name="event_by_stream")]

    def __str__(self) -> str:
        return self.summary
