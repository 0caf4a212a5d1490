"""The time that goes by until the receivers of alerts are told."""

from datetime import timedelta

from django.db.models import F

from streams.models import Notification
from streams.services.dispatch import notifications_deliver


def deliver(*, after: timedelta = timedelta(0)) -> None:
    """The worker tells what is due, so much later."""
    Notification.objects.update(
        due_at=F("due_at") - after, tried_at=F("tried_at") - after, created_at=F("created_at") - after
    )
    while notifications_deliver():
        pass
