"""A demonstration that is under way."""

from django.db import models

from streams.models.stream import Stream


class DemoRun(models.Model):
    """Live traffic into a stream until a moment; the row goes when it ends. ``published``: messages so far."""

    stream = models.OneToOneField(Stream, on_delete=models.CASCADE, related_name="demo_run")
    published = models.PositiveIntegerField(default=0)
    ends_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"demo in {self.stream}"
