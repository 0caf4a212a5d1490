"""Alerts: what fires, what did, the rules, and what a rule would have done."""

import time
from contextlib import suppress
from datetime import timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard import formats, quantities
from dashboard.alert_forms import NewRuleForm, RuleDeleteForm, RuleFields, RuleForm
from dashboard.forms import refusal_show
from dashboard.quantities import number_of
from dashboard.templatetags.shell import lacks_for_all
from dashboard.views.door import base_url, console_action, console_form, is_part, safe_next
from streams import selectors
from streams.access import Caller, rule_for
from streams.errors import Refusal
from streams.models import AlertRule
from streams.selectors.alerts import AlertPage
from streams.selectors.back_tests import BackTest
from streams.services.alerts import RuleMoved, rule_change, rule_check, rule_create, rule_delete
from streams.services.notifications import rule_test

MUTES_S = (3600, 8 * 3600, 24 * 3600)
LONGEST_REASON = 200
FIELDS = {"for_seconds": "lasting", "muted_until": "muted"}
PAGE_SIZE = 50
UNNAMED = "new"
JUDGED = ("stream", "group", "watch", "limit", "clear", "statuses", "lasting")
"""The fields by which a rule judges."""


@console_form
def alerts(request: HttpRequest, caller: Caller) -> HttpResponse:
    """What fires, the rules and the form of a new one; a POST tries it or makes it, and an address tries it again. htmx
    asks for what it would have done alone, while it is typed.
    """
    caller.demand(_right(request))
    if _right(request) == "manage":
        caller.demand_every_stream()
    asks_try = _asks_try(request)
    address = _judged(request.GET, "name") if asks_try else None
    form = NewRuleForm(request.POST if request.method == "POST" else address)
    if asks_try and is_part(request):
        return _typed(request, caller, form)
    tried = tried_rule = None
    if form.is_bound and form.is_valid():
        try:
            if asks_try:
                tried_rule, tried = _tried(caller, form, form.cleaned_data["name"])
            else:
                rule = rule_create(
                    caller.workspace,
                    name=form.cleaned_data["name"],
                    settings=form.settings(),
                    actor=caller.actor,
                )
                return _made(request, rule)
        except Refusal as refusal:
            _show(refusal, form)
    # Looked at first: what fires in between, the page says to be newer.
    known = selectors.firing_for(caller)
    firing = _page(request, caller, "firing")
    context = {
        "section": "alerts",
        "caller": caller,
        "mark": known.mark,
        "firing": firing,
        "muted": max(0, firing.total - known.loud),
        "resolved": _page(request, caller, "resolved"),
        "rules": selectors.rules_of(caller),
        "mutes_s": MUTES_S,
        "form": form,
        "tried": tried,
        "tried_rule": tried_rule,
        "tried_at": _tried_at(request, form) if tried else "",
        "may_manage": caller.may_change_rules,
        "needs_manage": lacks_for_all(caller, "manage"),
        "base_url": base_url(request),
    }
    return render(request, "dashboard/alerts.html", context, status=422 if form.errors else 200)


@console_form
def rule(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """One rule; a POST tries or saves it, and an address tries it again. htmx asks as of ``alerts``."""
    found = rule_for(caller, name, may=_right(request))
    shown = selectors.rule_view(caller, found)
    tried = tried_rule = None
    asks_try = _asks_try(request)
    if request.method == "GET" and asks_try:
        form = RuleForm.of_address(_judged(request.GET), rule=found, webhook_url=shown.webhook_url)
    else:
        form = RuleForm(
            request.POST if request.method == "POST" else None, rule=found, webhook_url=shown.webhook_url
        )
    if asks_try and is_part(request):
        return _typed(request, caller, form, rule=found)
    if form.is_bound and form.is_valid():
        try:
            if asks_try:
                tried_rule, tried = _tried(caller, form, name)
            elif not form.moved:
                changed = rule_change(
                    found, changes=form.changes(), actor=caller.actor, as_of=found.updated_at
                )
                messages.success(request, _("Rule %(name)s was saved.") % {"name": changed.name})
                if not found.webhook_secret:
                    _tell_secret(request, changed)
                return redirect("dashboard:alerts")
        except RuleMoved:  # just now
            found.refresh_from_db()
            form = RuleForm(request.POST, rule=found, webhook_url=found.webhook_url)
        except Refusal as refusal:
            _show(refusal, form)
    context = {
        "section": "alerts",
        "caller": caller,
        "rule": found,
        "deliveries": shown.deliveries,
        "form": form,
        "tried": tried,
        "tried_rule": tried_rule,
        "tried_at": _tried_at(request, form) if tried else "",
        "may_manage": caller.may_change_rules,
        "needs_manage": lacks_for_all(caller, "manage"),
        "base_url": base_url(request),
    }
    status = 409 if form.moved and not tried else 422 if form.errors else 200
    return render(request, "dashboard/alert_rule.html", context, status=status)


@console_action
def switch(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Let a rule rest (``enabled`` is ``off``), or go on (``on``), whatever somebody else did meanwhile."""
    found = rule_for(caller, name, may="manage")
    wanted = request.POST.get("enabled")
    if wanted not in {"on", "off"}:
        raise Refusal("validation_error", _("A rule is turned on or off."), fields=["enabled"])
    rule_change(found, changes={"enabled": wanted == "on"}, actor=caller.actor)
    return redirect(safe_next(request, default="dashboard:alerts"))


@console_action
def mute(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Let a rule tell nobody for a while (``seconds``, and why), or at once again (0); what fires by it fires on."""
    found = rule_for(caller, name, may="manage")
    seconds = request.POST.get("seconds", "")
    if seconds not in {"0", *(str(each) for each in MUTES_S)}:
        raise Refusal("validation_error", _("A rule can be muted for an hour, eight hours or a day."))
    until = timezone.now() + timedelta(seconds=int(seconds)) if seconds != "0" else None
    reason = request.POST.get("reason", "").strip() if until else ""
    if len(reason) > LONGEST_REASON:
        raise Refusal("validation_error", _("The reason has at most 200 characters."))
    rule_change(found, changes={"muted_until": until, "mute_reason": reason}, actor=caller.actor)
    if until is None:
        messages.success(request, _("Rule %(name)s was unmuted.") % {"name": name})
    else:
        said = _("Rule %(name)s is muted until %(moment)s. Its firing alerts stay listed.")
        moment = formats.moment(int(until.timestamp()) * 1000).replace(".000 ", " ")
        messages.success(request, said % {"name": name, "moment": moment})
    return redirect(safe_next(request, default="dashboard:alerts"))


@console_action
def test(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Send a test to each receiver of a rule, as it is saved, and say how it took it."""
    found = rule_for(caller, name, may="manage")
    for each in rule_test(found, actor=caller.actor):
        word = _("webhook") if each.channel == "webhook" else _("e-mail")
        if each.error:
            said = _("The test by %(channel)s was not accepted: %(error)s")
            messages.error(request, said % {"channel": word, "error": each.error})
        else:
            messages.success(request, _("The test by %(channel)s was accepted.") % {"channel": word})
    return redirect("dashboard:alert_rule", name)


@console_form
def delete(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """What goes with a rule; a POST, with its name typed where anything does, deletes it."""
    found = rule_for(caller, name, may="manage")
    goes = selectors.rule_holdings(found)
    phrase = found.name if goes.alerts or goes.has_secret else ""
    form = RuleDeleteForm(
        request.POST if request.method == "POST" else None,
        phrase=phrase,
        initial={"seen_alerts": goes.alerts},
    )
    grown = False
    if request.method == "POST" and form.is_valid():
        grown = goes.alerts > (form.cleaned_data["seen_alerts"] or 0)
        if not grown:
            rule_delete(found, actor=caller.actor)
            messages.success(request, _("Rule %(name)s was deleted.") % {"name": name})
            return redirect("dashboard:alerts")
        form = RuleDeleteForm(phrase=phrase, initial={"seen_alerts": goes.alerts})
    context = {
        "section": "alerts",
        "caller": caller,
        "rule": found,
        "goes": goes,
        "form": form,
        "grown": grown,
        "base_url": base_url(request),
    }
    status = 409 if grown else 422 if form.errors else 200
    return render(request, "dashboard/alert_rule_delete.html", context, status=status)


def _asks_try(request: HttpRequest) -> bool:
    return "try" in (request.POST if request.method == "POST" else request.GET)


def _judged(query: QueryDict, *more: str) -> QueryDict:
    """What an address may say of a rule: by what it judges. Whom it tells is typed, and stands in no address."""
    found = QueryDict(mutable=True)
    for name in (*more, *JUDGED):
        if name in query:
            found.setlist(name, query.getlist(name))
    return found


def _tried_at(request: HttpRequest, form: RuleFields) -> str:
    """Where a dry run is done again, of a rule that is made with what is not saved of it."""
    assert isinstance(form.data, QueryDict)
    if isinstance(form, RuleForm):
        sent = _judged(form.data)
        for name in sent.keys() - form.unsaved.keys():
            del sent[name]
    else:
        sent = _judged(form.data, "name")
    sent["try"] = "1"
    return f"{request.path}?{sent.urlencode()}"


def _right(request: HttpRequest) -> str:
    """What a page of a rule asks for: who may read may try one, as over the API."""
    return "manage" if request.method == "POST" and "try" not in request.POST else "read"


def _page(request: HttpRequest, caller: Caller, state: str) -> AlertPage:
    """The page of what fires, or of what is resolved, that the query string names under that word."""
    number = number_of(request.GET.get(state), default=1, low=1, high=quantities.LARGEST)
    return selectors.alerts_page(caller, firing=state == "firing", number=number, size=PAGE_SIZE)


def _tried(caller: Caller, form: RuleFields, name: str) -> tuple[AlertRule, BackTest]:
    """The rule that a form holds, which is not saved, and what it would have done."""
    caller.demand_patterns((form.cleaned_data["stream"],))
    candidate = AlertRule(workspace=caller.workspace, name=name, **form.settings())
    rule_check(candidate)
    return candidate, selectors.back_test(candidate, now_ms=int(time.time() * 1000))


def _typed(
    request: HttpRequest, caller: Caller, form: RuleFields, *, rule: AlertRule | None = None
) -> HttpResponse:
    """What a rule would have done as it is typed; nothing while it is none yet. A new one may have no name so far."""
    context: dict[str, object] = {"form": form, "fixed": rule is not None}
    if form.is_bound and not form.errors.keys() - {"name"}:
        with suppress(Refusal):
            tried_rule, tried = _tried(caller, form, rule.name if rule else UNNAMED)
            context |= {"tried": tried, "tried_rule": tried_rule, "tried_at": _tried_at(request, form)}
    return render(request, "dashboard/parts/back_test.html", context)


def _made(request: HttpRequest, rule: AlertRule) -> HttpResponse:
    messages.success(request, _("Rule %(name)s was created.") % {"name": rule.name})
    _tell_secret(request, rule)
    return redirect("dashboard:alerts")


def _tell_secret(request: HttpRequest, rule: AlertRule) -> None:
    """Say what a first webhook is signed with."""
    if rule.webhook_secret:
        said = _("Its webhooks are signed with %(secret)s: copy it now, it is shown only once.")
        messages.warning(request, said % {"secret": rule.webhook_secret})


def _show(refusal: Refusal, form: RuleFields) -> None:
    if refusal.code == "forbidden":
        raise refusal
    if refusal.code == "alert_rule_exists":
        form.add_error("name", refusal.message)
    else:
        refusal_show(refusal, form, names=FIELDS)
