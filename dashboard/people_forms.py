"""What is filled in about people and workspaces."""

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

from dashboard.forms import BootstrapMixin
from streams import naming
from streams.models import Plan, Role, Workspace

ROLES = (
    (Role.OBSERVER, _("observer: sees figures, and no message")),
    (Role.VIEWER, _("viewer: sees messages, too, changes nothing")),
    (Role.OPERATOR, _("operator: publishes, consumes, makes and changes streams and groups")),
    (Role.ADMIN, _("admin: tokens and people, too")),
)
FASTEST = 1_000_000


class NewPasswordForm(BootstrapMixin, SetPasswordForm):  # type: ignore[type-arg]
    """A password in place of a one-time one."""


class OwnPasswordForm(BootstrapMixin, PasswordChangeForm):
    """A password in place of the present one, which is asked for."""


class PersonForm(BootstrapMixin, forms.Form):
    """A person to take into the workspace."""

    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        validators=[
            RegexValidator(
                rf"^{naming.USER}\Z",
                _("Letters, digits and . _ @ + -; it begins with a letter or a digit."),
            )
        ],
        widget=forms.TextInput(
            attrs={"placeholder": "ada@example.com", "autocomplete": "off", "spellcheck": "false"}
        ),
        help_text=_("To log in with; an e-mail address will do."),
    )
    role = forms.ChoiceField(label=_("Role"), choices=ROLES, initial=Role.VIEWER)


class WorkspaceForm(BootstrapMixin, forms.Form):
    """What may be set of a workspace."""

    plan = forms.ChoiceField(
        label=_("Plan"),
        choices=Plan.choices,
        initial=Plan.UNLIMITED,
        help_text=_("What its streams may keep."),
    )
    rate_limit = forms.IntegerField(
        label=_("Requests a second"),
        required=False,
        min_value=1,
        max_value=FASTEST,
        widget=forms.NumberInput(attrs={"placeholder": _("no limit")}),
        help_text=_("That each token may make."),
    )
    rate_burst = forms.IntegerField(
        label=_("At once"),
        required=False,
        min_value=1,
        max_value=FASTEST,
        widget=forms.NumberInput(attrs={"placeholder": _("as in one second")}),
        help_text=_("After a rest."),
    )


class NewWorkspaceForm(WorkspaceForm):
    """A workspace to make."""

    name = forms.CharField(
        label=_("Name"),
        max_length=50,
        validators=[
            RegexValidator(
                rf"^{naming.NAME}\Z",
                _("Letters, digits, dots, dashes and underscores; it begins with a letter or a digit."),
            )
        ],
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    field_order = ("name", "plan", "rate_limit", "rate_burst")


class WorkspaceDeleteForm(BootstrapMixin, forms.Form):
    """The name of the workspace, typed, before it goes."""

    confirm = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    )

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.workspace = workspace
        self.fields["confirm"].label = _("Type %(name)s to confirm") % {"name": workspace.name}

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if typed != self.workspace.name:
            raise ValidationError(_("That is not the workspace's name. Nothing was deleted."))
        return typed
