"""Questions in SQL: asked by web processes, answered by the analytics process; and those worth keeping."""

from typing import ClassVar

from django.db import models

from streams.models.workspace import Workspace


class QueryState(models.TextChoices):
    """How far a query is; all from ``succeeded`` on are ends."""

    QUEUED = "queued"
    STARTING = "starting"  # Spark is
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    REFUSED = "refused"
    FAILED = "failed"
    LOST = "lost"
    CANCELLED = "cancelled"


UNFINISHED = (QueryState.QUEUED, QueryState.STARTING, QueryState.RUNNING)


class Query(models.Model):
    """One question and its answer, kept for a while.

    Attributes:
        streams: name patterns of the caller that narrow it; none is every stream of the workspace.
        limit: most rows of the answer.
        counts_to: the offset up to which it counts for the preview of an erasure; None of what anybody asked, as only
            the preview sets it.
        progress: 0 to 1, by Spark's tasks.
        cancel: somebody wants it to end.
        error: why there is no answer, a sentence.
        columns: pairs of name and type.
        rows: JSON text, an array of arrays, written by Spark and passed on as it is.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="queries")
    sql = models.TextField()
    limit = models.PositiveIntegerField()
    streams = models.JSONField(default=list)
    counts_to = models.PositiveBigIntegerField(null=True, default=None, db_default=None)
    asked_by = models.CharField(max_length=200)
    state = models.CharField(
        max_length=10, choices=QueryState.choices, default=QueryState.QUEUED, db_index=True
    )
    progress = models.FloatField(default=0.0)
    cancel = models.BooleanField(default=False)
    error = models.TextField(blank=True, default="")
    columns = models.JSONField(default=list)
    rows = models.TextField(blank=True, default="[]")
    row_count = models.PositiveIntegerField(default=0)
    truncated = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"query {self.pk}: {self.state}"

    @property
    def is_finished(self) -> bool:
        return self.state not in UNFINISHED

    @property
    def elapsed_s(self) -> float | None:
        """Seconds from the question to the answer; None while there is none."""
        return None if self.finished_at is None else (self.finished_at - self.created_at).total_seconds()


class SavedQuery(models.Model):
    """A query that a workspace keeps under a name."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="saved_queries")
    name = models.CharField(max_length=100)
    sql = models.TextField()
    saved_by = models.CharField(max_length=200)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="saved_query_name_once_a_workspace"),
        ]

    def __str__(self) -> str:
        return self.name
