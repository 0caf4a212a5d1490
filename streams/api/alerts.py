"""Alerts over HTTP: rules, what fires, and what a rule would have done."""

import time
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from streams.access import rule_for
from streams.api.alert_objects import (
    AlertObject,
    RuleChanged,
    RuleChanges,
    RuleMade,
    RuleObject,
    RuleTried,
    RuleWanted,
    TestedObject,
    WouldHave,
)
from streams.api.base import ApiView
from streams.api.operation import Operation
from streams.api.queries import AlertsAsked
from streams.models import AlertRule
from streams.selectors import alerts_latest, back_test, rule_view, rules_of
from streams.services.alerts import rule_change, rule_check, rule_create, rule_delete
from streams.services.notifications import rule_test


class AlertsView(ApiView):
    """``/alerts/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="alerts_list",
            summary="What fired, the newest first",
            scope="read",
            query=AlertsAsked,
            answer=AlertObject,
            many=True,
            description="Pages with `Link`; what fires has no `ended_at`. A token that is narrowed to streams sees "
            "those about its streams, and the rules that reach no further than itself.",
        ),
    }

    def get(self, request: Request) -> Response:
        state = self.asked.get("state")
        alerts, more = alerts_latest(
            self.caller,
            firing=None if state is None else state == "firing",
            after=self.asked.get("after"),
            limit=self.asked["limit"],
        )
        return self.page(self.rows(AlertObject, alerts), next_after=alerts[-1].alert.pk if more else None)


class AlertRulesView(ApiView):
    """``/alerts/rules/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="alert_rules_list", summary="List alert rules", scope="read", answer=RuleObject, many=True
        ),
        "POST": Operation(
            id="alert_rule_create",
            summary="Make an alert rule",
            scope="manage",
            body=RuleWanted,
            status=201,
            answer=RuleMade,
            refusals=("alert_rule_exists", "quota_exceeded"),
            examples={
                "lag": {
                    "name": "billing-lags",
                    "stream": "orders",
                    "group": "billing",
                    "watch": "lag",
                    "limit": 1000,
                }
            },
        ),
    }

    def get(self, request: Request) -> Response:
        return Response(self.rows(RuleObject, rules_of(self.caller)))

    def post(self, request: Request) -> Response:
        self.caller.demand_every_stream()
        wanted = self.sent(RuleWanted)
        rule = rule_create(
            self.caller.workspace, name=wanted.pop("name"), settings=wanted, actor=self.caller.actor
        )
        return Response(RuleMade(rule_view(self.caller, rule)).data, status=201)


class AlertRuleView(ApiView):
    """``/alerts/rules/{name}``"""

    operations: ClassVar = {
        "GET": Operation(
            id="alert_rule_get",
            summary="See an alert rule",
            scope="read",
            answer=RuleObject,
            refusals=("alert_rule_not_found",),
        ),
        "PATCH": Operation(
            id="alert_rule_change",
            summary="Change, mute or disable an alert rule",
            scope="manage",
            body=RuleChanges,
            answer=RuleChanged,
            refusals=("alert_rule_not_found",),
            description="What fires by it ends and is judged anew, unless only the receivers or the mute changed.",
            examples={"mute": {"muted_until": "2126-11-22T06:00:00Z", "mute_reason": "moving the warehouse"}},
        ),
        "DELETE": Operation(
            id="alert_rule_delete",
            summary="Delete an alert rule with its alerts",
            scope="manage",
            status=204,
            refusals=("alert_rule_not_found",),
        ),
    }

    def get(self, request: Request, name: str) -> Response:
        return Response(RuleObject(rule_view(self.caller, rule_for(self.caller, name, may="read"))).data)

    def patch(self, request: Request, name: str) -> Response:
        rule = rule_for(self.caller, name, may="manage")
        changed = rule_change(rule, changes=self.sent(RuleChanges), actor=self.caller.actor)
        is_signed_now = changed.webhook_secret != rule.webhook_secret
        answer = RuleChanged if is_signed_now else RuleObject
        return Response(answer(rule_view(self.caller, changed)).data)

    def delete(self, request: Request, name: str) -> Response:
        rule_delete(rule_for(self.caller, name, may="manage"), actor=self.caller.actor)
        return Response(status=204)


class AlertRuleTestView(ApiView):
    """``/alerts/rules/{name}/test``"""

    operations: ClassVar = {
        "POST": Operation(
            id="alert_rule_test",
            summary="Send a test to each receiver of an alert rule, and wait for how it took it",
            scope="manage",
            answer=TestedObject,
            many=True,
            refusals=("alert_rule_not_found",),
            description="Signed as what fires, with `what` `test`, and tried once; a mute does not hold it back. What "
            "went wrong is in the answer, which is 200 then, too. A receiver has ten seconds.",
        ),
    }

    def post(self, request: Request, name: str) -> Response:
        rule = rule_for(self.caller, name, may="manage")
        return Response(self.rows(TestedObject, rule_test(rule, actor=self.caller.actor)))


class AlertTryView(ApiView):
    """``/alerts/try``"""

    operations: ClassVar = {
        "POST": Operation(
            id="alert_rule_try",
            summary="What a rule would have done over what is kept; changes nothing",
            scope="read",
            body=RuleTried,
            answer=WouldHave,
            description="`since` says how far it reaches: seven hours at most with the samples, and 30 days with the "
            "minutes that the history counted before them.",
            examples={"lag": {"stream": "orders", "watch": "lag", "limit": 1000}},
        ),
    }

    def post(self, request: Request) -> Response:
        wanted: dict[str, Any] = self.sent(RuleTried)
        self.caller.demand_patterns((wanted["stream"],))
        rule = AlertRule(workspace=self.caller.workspace, created_at=timezone.now(), **wanted)
        rule_check(rule)
        found = back_test(rule, now_ms=int(time.time() * 1000))
        told = {
            "since": found.since,
            "until": found.until,
            "sampled_since": found.sampled_since,
            "subjects": found.subjects,
            "fired": len(found.spans),
            "longest_seconds": found.longest_seconds,
        }
        return Response(WouldHave(told).data)
