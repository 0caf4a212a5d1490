"""Tokens: listed, made with the secret shown once, revoked."""

from datetime import timedelta

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard.forms import TokenForm
from dashboard.views.door import base_url, console_action, console_form
from streams import selectors
from streams.access import Caller
from streams.errors import Refusal
from streams.models import Token
from streams.services.tokens import token_create, token_revoke


@console_form
def tokens(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The list and the form; a new token's secret is in this one answer and nowhere else."""
    caller.demand("admin")
    form = TokenForm(request.POST or None)
    secret, made = "", None
    if request.method == "POST" and _is_valid(form, caller):
        days = form.cleaned_data["expires"]
        made, secret = token_create(
            caller.workspace,
            name=form.cleaned_data["name"],
            scopes=form.cleaned_data["scopes"],
            streams=form.cleaned_data["streams"],
            expires_at=timezone.now() + timedelta(days=int(days)) if days else None,
            actor=caller.actor,
        )
        form = TokenForm()
    context = {
        "section": "tokens",
        "caller": caller,
        "tokens": list(selectors.tokens_of(caller)),
        "form": form,
        "made": made,
        "secret": secret,
        "base_url": base_url(request),
    }
    return render(request, "dashboard/tokens.html", context, status=422 if form.errors else 200)


def _is_valid(form: TokenForm, caller: Caller) -> bool:
    """Whether it may be made so: nobody makes a token that reaches further than they do."""
    if not form.is_valid():
        return False
    try:
        caller.demand_patterns(form.cleaned_data["streams"])
    except Refusal as refusal:
        form.add_error("streams", refusal.message)
        return False
    return True


@console_action
def revoke(request: HttpRequest, caller: Caller, token_id: int) -> HttpResponse:
    """Revoke a token of this workspace."""
    caller.demand("admin")
    token = Token.objects.filter(workspace=caller.workspace, pk=token_id).select_related("workspace").first()
    if token is None:
        raise Http404
    caller.demand_patterns(token.streams)
    token_revoke(token, actor=caller.actor)
    messages.success(
        request, _("Token %(name)s was revoked; it is refused from now on.") % {"name": token.name}
    )
    return redirect("dashboard:tokens")
