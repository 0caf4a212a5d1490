"""The chain of events, walked by the worker a slice at a time and again every hour, so that pages can say how it is."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from streams.models import ChainCheck, Event, EventHead
from streams.selectors import first_fault

SLICE = 500
AGAIN_AFTER = timedelta(hours=1)


@transaction.atomic
def chain_check_step() -> ChainCheck:
    """Look at the next slice; at the chain's end note how far it holds, and after an hour begin anew.

    It compares each event with its hash and with the one before, and the end with the head. What other places know
    is compared by ``manage.py okmq_verify_events``. A fault begins the walk anew, and stands until a whole one has
    found none.
    """
    now = timezone.now()
    check, _ = ChainCheck.objects.select_for_update().get_or_create(pk=1, defaults={"began_at": now})
    head = EventHead.objects.first()
    if head is None:
        return check
    if check.at == 0:
        check.hash, check.began_at = head.chain, now
    rows = list(Event.objects.filter(id__gt=check.at, id__lte=head.last).order_by("id")[:SLICE])
    fault = first_fault(rows, previous=check.hash)
    if rows:
        check.at, check.hash = rows[-1].id, rows[-1].hash
    at_end = len(rows) < SLICE
    if not fault and at_end and (check.at, check.hash) != (head.last, head.hash):
        fault = f"The chain should end at event {head.last}, and ends at {check.at}."
    if fault:
        check.fault, check.at = fault, 0
    elif at_end:
        check.fault, check.whole_to, check.whole_at = "", check.at, now
        if now - check.began_at > AGAIN_AFTER:
            check.at = 0
    check.save()
    return check
