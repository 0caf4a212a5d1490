"""Reading: rows together with how they stand in the log. One module a subject; callers import them from here."""

from streams.selectors.event_chain import Fault, Proof, events_exported, events_prove, first_fault
from streams.selectors.events import EventsWanted, events_found, events_latest, events_matching, events_page
from streams.selectors.groups import (
    GroupView,
    Member,
    dead_letters,
    group_positions,
    group_view,
    group_views,
)
from streams.selectors.history import history_points, history_position, history_totals, runs_latest, runs_page
from streams.selectors.messages import (
    Found,
    entries_page,
    message_at,
    messages_before,
    messages_between,
    messages_found,
    messages_from,
    offset_at,
    offset_of_id,
    offsets_at,
)
from streams.selectors.people import PersonView, logins_of, people_of, people_page, workspaces_of_person
from streams.selectors.policies import policies_page, policy_view
from streams.selectors.retention import retention_preview
from streams.selectors.retention_effects import Effect, effects_of
from streams.selectors.samples import METRICS_STREAM, Sample, metrics_points, recent_samples
from streams.selectors.streams import (
    Overview,
    StreamName,
    StreamView,
    overview,
    stream_figures,
    stream_view,
    stream_views,
    streams_filling,
    streams_matching,
    streams_of,
    streams_page,
)
from streams.selectors.times import moment
from streams.selectors.workspaces import (
    WorkspaceView,
    tokens_page,
    workspace_named,
    workspace_view,
    workspaces_page,
)
from streams.selectors.worst_groups import WorstGroup, worst_groups

__all__ = [
    "METRICS_STREAM",
    "Effect",
    "EventsWanted",
    "Fault",
    "Found",
    "GroupView",
    "Member",
    "Overview",
    "PersonView",
    "Proof",
    "Sample",
    "StreamName",
    "StreamView",
    "WorkspaceView",
    "WorstGroup",
    "dead_letters",
    "effects_of",
    "entries_page",
    "events_exported",
    "events_found",
    "events_latest",
    "events_matching",
    "events_page",
    "events_prove",
    "first_fault",
    "group_positions",
    "group_view",
    "group_views",
    "history_points",
    "history_position",
    "history_totals",
    "logins_of",
    "message_at",
    "messages_before",
    "messages_between",
    "messages_found",
    "messages_from",
    "metrics_points",
    "moment",
    "offset_at",
    "offset_of_id",
    "offsets_at",
    "overview",
    "people_of",
    "people_page",
    "policies_page",
    "policy_view",
    "recent_samples",
    "retention_preview",
    "runs_latest",
    "runs_page",
    "stream_figures",
    "stream_view",
    "stream_views",
    "streams_filling",
    "streams_matching",
    "streams_of",
    "streams_page",
    "tokens_page",
    "workspace_named",
    "workspace_view",
    "workspaces_of_person",
    "workspaces_page",
    "worst_groups",
]
