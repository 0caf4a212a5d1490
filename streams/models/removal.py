"""How much of what a stream lost has been recorded."""

from django.db import models

from streams.models.stream import Stream


class RemovalCount(models.Model):
    """Messages and bytes of a stream that are gone, as far as events tell of them.

    Everything that is gone is what was appended less what is there; what people took away the log counts as it goes;
    so what retention removed is arithmetic, whichever limit it was and whenever it acted.

    Attributes:
        messages, bytes: that retention had removed when it was recorded last.
        appended_bytes: ever appended at that time; fewer now means that the stream began anew.
        first_offset: at that time.
        told_at: when that was, None if never.
        missed: that retention had removed before the history had them, when that was recorded last.
        missed_at: when that was, None if never.
    """

    stream = models.OneToOneField(Stream, on_delete=models.CASCADE, related_name="removal_count")
    messages = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    appended_bytes = models.BigIntegerField(default=0)
    first_offset = models.BigIntegerField(default=1)
    told_at = models.DateTimeField(null=True)
    missed = models.BigIntegerField(default=0, db_default=0)
    missed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.stream}: {self.messages} gone"
