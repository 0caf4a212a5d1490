"""What happened: who did it, when, from where, before and after; append-only, each event chained to the one before."""

from typing import ClassVar

from django.db import models

from streams import chain


class Event(models.Model):
    """One thing that a person, a token or the system did.

    Rows are written by ``services.events`` alone, in the order of their ids. Triggers of the database refuse to
    change or delete one, and to insert one anywhere but at the end. (SQLite forgets triggers when a migration
    remakes the table: such a migration has to set them again.)

    Attributes:
        workspace, workspace_id: name and id at that time, no foreign key: an event outlives its workspace. Empty
            and None for what concerns the whole installation.
        previous, hash: see ``streams.chain``.
    """

    id = models.BigIntegerField(primary_key=True)
    time = models.DateTimeField(db_index=True)
    kind = models.CharField(max_length=50)
    workspace = models.CharField(max_length=50, blank=True, default="")
    workspace_id = models.BigIntegerField(null=True)
    stream = models.CharField(max_length=50, blank=True, default="")
    group = models.CharField(max_length=50, blank=True, default="")
    actor = models.CharField(max_length=200)
    address = models.CharField(max_length=64, blank=True, default="")
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    summary = models.TextField()
    previous = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["workspace_id", "stream", "-id"], name="event_by_stream"),
            models.Index(fields=["workspace", "-id"], name="event_by_workspace"),
        ]

    def __str__(self) -> str:
        return self.summary

    def digest(self) -> str:
        """The hash that this row should have, by what stands in it."""
        return chain.digest(
            {field: getattr(self, field) for field in chain.FIELDS},
            previous=self.previous,
        )


class EventHead(models.Model):
    """Where the chain ends. One row; its lock, held to the end of a transaction, puts writers in a line.

    Attributes:
        chain: the chain's id, which the first event follows.
        last, hash: the last event.
        noted: the last of the data plane's notes that became an event.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    chain = models.CharField(max_length=64)
    last = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64)
    noted = models.CharField(max_length=40, default="0-0")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(id=1), name="one_head_of_events"),
        ]

    def __str__(self) -> str:
        return f"{self.last} {self.hash}"


class ChainCheck(models.Model):
    """How far the worker's walk over the chain has come. One row.

    Attributes:
        at, hash: the last event of this walk that was looked at.
        whole_to, whole_at: the end of the chain when the last walk reached it, and when.
        began_at: when this walk began.
        fault: the first thing that breaks the chain, as a sentence; empty while it holds.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    at = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64, blank=True, default="")
    whole_to = models.BigIntegerField(default=0)
    whole_at = models.DateTimeField(null=True)
    began_at = models.DateTimeField()
    fault = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return self.fault or f"verified to {self.whole_to}"
