"""What a page polls while its socket cannot be had."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import get_language

from dashboard.live import live_events, rates, topics
from dashboard.views.door import console_page
from streams import selectors
from streams.access import Caller


@console_page
def now(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The events that the socket would send for these topics, as they stand now."""
    names = request.GET.getlist("topic")[: topics.MOST_TOPICS]
    found = topics.resolve(caller, names)
    events = []
    if live_events.OVERVIEW in found:
        totals, firing = rates.totals(caller), selectors.firing_for(caller)
        overview = live_events.OverviewSampled(
            beat=0,
            workspace_id=caller.workspace.pk,
            at_ms=totals.at_ms or 0,
            streams=totals.streams,
            messages=totals.messages,
            bytes=totals.bytes,
            rate_in=totals.rate_in,
            bytes_in=totals.bytes_in,
            rate_out=totals.rate_out,
            last_ms=totals.last_ms,
            alerts=firing.loud,
            alerts_mark=firing.mark,
            events_mark=selectors.newest_event(caller),
            groups_mark=selectors.statuses_changed_ms(),
            unavailable=totals.unavailable,
            left_out=totals.left_out,
        )
        events.append((live_events.OVERVIEW, live_events.wire(overview)))
    # After the sums, which would pass for a beat: whether the worker is silent.
    events += [
        (topic.name, live_events.wire(event)) for topic, event in topics.snapshots(list(found.values()))
    ]
    language = get_language()
    told = [(topic, live_events.in_language(event, language)) for topic, event in events]
    return JsonResponse({"events": [{"topic": topic, "event": event} for topic, event in told]})
