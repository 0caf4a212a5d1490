"""Erasures: messages that must not be kept, taken out of the history."""

from typing import ClassVar

from django.db import models

from streams.models.history import RunState
from streams.models.workspace import Workspace


class Erasure(models.Model):
    """What somebody had taken out of a history: one message, all of one key, or all of deleted streams.

    Attributes:
        workspace: where it was asked for.
        deleted_workspace: the name of one that was deleted, whose streams are meant instead.
        stream: its name when it was asked for, or empty for all streams of a workspace that was deleted; ``stream_id``
            says which stream that was, and is empty for all of that name that were deleted.
        offset, key: one of the two, or of deleted streams neither, for all; the key is forgotten once it is done.
        key_sha256: what is kept of it, to show that it was this one.
        up_to: the last offset that it means: what is published later stays. None of deleted streams, and of what
            a host of the version before was asked for.
        spared: ids of streams that one of deleted streams does not mean: they were deleted after it was asked for.
        messages: how many were in the history.
        dead_letters: how many the groups of the stream kept, replayed ones included; None of deleted streams, whose
            groups went with them.
        through: up to which offset the history was looked through.
        progress: how much of the history's files was looked through, from 0 to 1.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="erasures")
    deleted_workspace = models.CharField(max_length=50, blank=True, default="", db_default="")
    stream = models.CharField(max_length=50)
    stream_id = models.CharField(max_length=12)
    offset = models.PositiveBigIntegerField(null=True)
    key = models.CharField(max_length=255, blank=True, default="")
    key_sha256 = models.CharField(max_length=64, blank=True, default="")
    up_to = models.PositiveBigIntegerField(null=True, default=None, db_default=None)
    spared = models.JSONField(default=list, db_default=[])
    state = models.CharField(max_length=20, choices=RunState.choices, default=RunState.QUEUED, db_index=True)
    messages = models.PositiveBigIntegerField(null=True)
    dead_letters = models.PositiveBigIntegerField(null=True)
    through = models.PositiveBigIntegerField(null=True)
    progress = models.FloatField(default=0.0, db_default=0.0)
    error = models.TextField(blank=True, default="")
    requested_by = models.CharField(max_length=200)
    address = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"erasure {self.pk} in {self.stream or self.deleted_workspace}: {self.state}"

    @property
    def name(self) -> str:
        """What the history knows it by: its number alone may be that of another, where the database is a new one."""
        return f"{self.pk} of {self.created_at.isoformat()}"

    @property
    def whose(self) -> tuple[object, ...]:
        """What tells the streams that are meant."""
        if not self.of_deleted:
            return (self.stream_id,)
        return (self.workspace_id, self.deleted_workspace, self.stream, *self.spared)

    @property
    def of_deleted(self) -> bool:
        """Whether it is about streams that were deleted."""
        return not self.stream_id
