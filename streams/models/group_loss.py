"""How much of what a group lost or gave up has been recorded."""

from django.db import models

from streams.models.group import Group


class GroupLoss(models.Model):
    """A group's messages that it never finished, as far as events tell of them.

    Attributes:
        undelivered: that went before they were delivered.
        unanswered: that went while they were out.
        dead_lettered: that became dead letters because they were delivered too often.
        lost_told_at, dead_told_at: when an event told of the first two, or of the third; None if never.
    """

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="loss")
    undelivered = models.BigIntegerField(default=0)
    unanswered = models.BigIntegerField(default=0)
    dead_lettered = models.BigIntegerField(default=0)
    lost_told_at = models.DateTimeField(null=True)
    dead_told_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.group}: {self.undelivered + self.unanswered} lost, {self.dead_lettered} dead-lettered"
