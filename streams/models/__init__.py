"""The rows: configuration, people's tokens, what happened, what Spark computed."""

from streams.models.alert import Alert, AlertRule, Notification
from streams.models.demo import DemoRun
from streams.models.erasure import Erasure
from streams.models.event import ChainCheck, Event, EventHead
from streams.models.group import Group
from streams.models.group_loss import GroupLoss
from streams.models.history import Rollup, RollupPosition, Run
from streams.models.person import FailedLogins, Login, OneTimePassword
from streams.models.policy import POLICY_LIMITS, Policy
from streams.models.query import UNFINISHED, Query, QueryState, SavedQuery
from streams.models.removal import RemovalCount
from streams.models.replay import Replay, ReplayState, WaitsFor
from streams.models.saved_filter import FILTER_PAGES, SavedFilter
from streams.models.standing import StandingRollup
from streams.models.stream import Retention, Stream
from streams.models.token import Token
from streams.models.workspace import (
    CAPS,
    DEFAULT_WORKSPACE,
    Cap,
    Membership,
    Plan,
    Role,
    Workspace,
)

__all__ = [
    "CAPS",
    "DEFAULT_WORKSPACE",
    "FILTER_PAGES",
    "POLICY_LIMITS",
    "UNFINISHED",
    "Alert",
    "AlertRule",
    "Cap",
    "ChainCheck",
    "DemoRun",
    "Erasure",
    "Event",
    "EventHead",
    "FailedLogins",
    "Group",
    "GroupLoss",
    "Login",
    "Membership",
    "Notification",
    "OneTimePassword",
    "Plan",
    "Policy",
    "Query",
    "QueryState",
    "RemovalCount",
    "Replay",
    "ReplayState",
    "Retention",
    "Role",
    "Rollup",
    "RollupPosition",
    "Run",
    "SavedFilter",
    "SavedQuery",
    "StandingRollup",
    "Stream",
    "Token",
    "WaitsFor",
    "Workspace",
]
