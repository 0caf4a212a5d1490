"""The analytics process without its threads."""

from okmq.analytics.process import Analytics


def work(analytics: Analytics) -> None:
    """Do what is queued, lane by lane, until nothing is."""
    while any(lane.step() for lane in analytics.lanes):
        continue


def due(analytics: Analytics) -> None:
    """Make the schedule's next look due, and do what it finds."""
    analytics.next_schedule = 0
    analytics.look()
    work(analytics)
