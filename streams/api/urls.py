"""The paths of the control plane; each with and without the slash at its end, without a redirect."""

from typing import Any, cast

from django.urls import URLPattern, re_path
from django.views.decorators.csrf import csrf_exempt

from streams.api.alerts import AlertRulesView, AlertRuleTestView, AlertRuleView, AlertsView, AlertTryView
from streams.api.configuration import ConfigurationApplyView, ConfigurationView
from streams.api.erasures import ErasuresView, ErasureView
from streams.api.errors import not_found
from streams.api.events import EventsView
from streams.api.group_preview import GroupPreviewView
from streams.api.groups import (
    DeadLettersReplayView,
    DeadLettersView,
    GroupPauseView,
    GroupResumeView,
    GroupSeekView,
    GroupsView,
    GroupView,
    PendingView,
)
from streams.api.history import HistoryView, MetricsView
from streams.api.message_groups import MessageGroupsView
from streams.api.openapi import SchemaView, docs
from streams.api.policies import PoliciesView, PolicyApplyView, PolicyPreviewView, PolicyView
from streams.api.purges import PurgePreviewView
from streams.api.removals import RemovalsView, RemovalUndoView, RemovalView
from streams.api.replays import ReplayPauseView, ReplayStartView, ReplaysView, ReplayView
from streams.api.retention import RetentionForecastView, RetentionPreviewView
from streams.api.runs import RunsView, RunView
from streams.api.saved_filters import FiltersView, FilterView
from streams.api.service import healthz, readyz
from streams.api.sql import SqlQueriesView, SqlQueryPublishView, SqlQueryView
from streams.api.streams import StreamsFindView, StreamsView, StreamView
from streams.api.tokens import TokensView, TokenView
from streams.api.users import UserPasswordView, UsersView, UserView
from streams.api.workspaces import AccountView, PlanPreviewView, WorkspacesView, WorkspaceView


def at(path: str, view: Any, name: str) -> URLPattern:
    """A path in both slash forms; ``<name>`` in it is one segment."""
    pattern = path.replace("<", "(?P<").replace(">", ">[^/]+)")
    return cast(URLPattern, re_path(rf"^{pattern}/?\Z", view, name=name))


app_name = "api"
urlpatterns = [
    at("streams", StreamsView.as_view(), "streams"),
    at("streams/find", StreamsFindView.as_view(), "streams-find"),
    at("streams/<name>", StreamView.as_view(), "stream"),
    at("streams/<name>/messages/<offset>/groups", MessageGroupsView.as_view(), "message-groups"),
    at("streams/<name>/groups", GroupsView.as_view(), "groups"),
    at("streams/<name>/groups/<group>", GroupView.as_view(), "group"),
    at("streams/<name>/groups/<group>/preview", GroupPreviewView.as_view(), "group-preview"),
    at("streams/<name>/groups/<group>/seek", GroupSeekView.as_view(), "group-seek"),
    at("streams/<name>/groups/<group>/pause", GroupPauseView.as_view(), "group-pause"),
    at("streams/<name>/groups/<group>/resume", GroupResumeView.as_view(), "group-resume"),
    at("streams/<name>/groups/<group>/pending", PendingView.as_view(), "pending"),
    at("streams/<name>/groups/<group>/dead-letters", DeadLettersView.as_view(), "dead-letters"),
    at(
        "streams/<name>/groups/<group>/dead-letters/replay",
        DeadLettersReplayView.as_view(),
        "dead-letters-replay",
    ),
    at("streams/<name>/retention/preview", RetentionPreviewView.as_view(), "retention-preview"),
    at("streams/<name>/retention/forecast", RetentionForecastView.as_view(), "retention-forecast"),
    at("streams/<name>/purge/preview", PurgePreviewView.as_view(), "purge-preview"),
    at("streams/<name>/removals", RemovalsView.as_view(), "removals"),
    at("streams/<name>/removals/<number>", RemovalView.as_view(), "removal"),
    at("streams/<name>/removals/<number>/undo", RemovalUndoView.as_view(), "removal-undo"),
    at("streams/<name>/history", HistoryView.as_view(), "stream-history"),
    at("streams/<name>/metrics", MetricsView.as_view(), "stream-metrics"),
    at("tokens", TokensView.as_view(), "tokens"),
    at("tokens/<token_id>", TokenView.as_view(), "token"),
    at("users", UsersView.as_view(), "users"),
    at("users/<name>", UserView.as_view(), "user"),
    at("users/<name>/password", UserPasswordView.as_view(), "user-password"),
    at("filters", FiltersView.as_view(), "filters"),
    at("filters/<filter_id>", FilterView.as_view(), "filter"),
    at("policies", PoliciesView.as_view(), "policies"),
    at("policies/<name>", PolicyView.as_view(), "policy"),
    at("policies/<name>/preview", PolicyPreviewView.as_view(), "policy-preview"),
    at("policies/<name>/apply", PolicyApplyView.as_view(), "policy-apply"),
    at("alerts", AlertsView.as_view(), "alerts"),
    at("alerts/try", AlertTryView.as_view(), "alert-try"),
    at("alerts/rules", AlertRulesView.as_view(), "alert-rules"),
    at("alerts/rules/<name>", AlertRuleView.as_view(), "alert-rule"),
    at("alerts/rules/<name>/test", AlertRuleTestView.as_view(), "alert-rule-test"),
    at("workspaces", WorkspacesView.as_view(), "workspaces"),
    at("workspaces/<name>", WorkspaceView.as_view(), "workspace"),
    at("workspaces/<name>/plan/preview", PlanPreviewView.as_view(), "plan-preview"),
    at("configuration", ConfigurationView.as_view(), "configuration"),
    at("configuration/apply", ConfigurationApplyView.as_view(), "configuration-apply"),
    at("account", AccountView.as_view(), "account"),
    at("events", EventsView.as_view(), "events"),
    at("analytics/runs", RunsView.as_view(), "runs"),
    at("analytics/runs/<run_id>", RunView.as_view(), "run"),
    at("analytics/replays", ReplaysView.as_view(), "replays"),
    at("analytics/replays/<replay_id>", ReplayView.as_view(), "replay"),
    at("analytics/replays/<replay_id>/start", ReplayStartView.as_view(), "replay-start"),
    at("analytics/replays/<replay_id>/pause", ReplayPauseView.as_view(), "replay-pause"),
    at("analytics/erasures", ErasuresView.as_view(), "erasures"),
    at("analytics/erasures/<erasure_id>", ErasureView.as_view(), "erasure"),
    at("analytics/query", SqlQueriesView.as_view(), "queries"),
    at("analytics/query/<query_id>", SqlQueryView.as_view(), "query"),
    at("analytics/query/<query_id>/publish", SqlQueryPublishView.as_view(), "query-publish"),
    at("schema", SchemaView.as_view(), "schema"),
    at("docs", csrf_exempt(docs), "docs"),
    re_path("", csrf_exempt(not_found), name="not-found"),
]

service_urls = [
    at("healthz", csrf_exempt(healthz), "healthz"),
    at("readyz", csrf_exempt(readyz), "readyz"),
]
