"""What is filled in about people and workspaces."""

from typing import Any, ClassVar

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

from dashboard.forms import BootstrapMixin, PatternsField
from dashboard.meanwhile import OpenForm
from streams import naming
from streams.models import Plan, Role, Workspace
from streams.services.workspaces import SETTINGS, settings_of

ROLES = (
    (Role.OBSERVER, _("observer: sees metrics, no messages")),
    (Role.VIEWER, _("viewer: also sees messages, read-only")),
    (Role.OPERATOR, _("operator: also publishes, consumes, manages streams and groups")),
    (Role.ADMIN, _("admin: also manages tokens and people")),
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
                _("Letters, digits and . _ @ + -; starts with a letter or a digit."),
            )
        ],
        widget=forms.TextInput(
            attrs={"placeholder": "ada@example.com", "autocomplete": "off", "spellcheck": "false"}
        ),
        help_text=_("Used to log in; may be an e-mail address."),
    )
    role = forms.ChoiceField(label=_("Role"), choices=ROLES, initial=Role.VIEWER)
    streams = PatternsField()


class NarrowingForm(BootstrapMixin, forms.Form):
    """The streams that a person of the workspace is narrowed to; it stands beside the form of a new one."""

    streams = PatternsField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, auto_id="narrowed_%s", **kwargs)


class WorkspaceFields(BootstrapMixin, forms.Form):
    """What may be set of a workspace."""

    plan = forms.ChoiceField(
        label=_("Plan"),
        choices=Plan.choices,
        initial=Plan.UNLIMITED,
        help_text=_("Limits of its streams."),
    )
    rate_limit = forms.IntegerField(
        label=_("Requests per second"),
        required=False,
        min_value=1,
        max_value=FASTEST,
        widget=forms.NumberInput(attrs={"placeholder": _("no limit")}),
        help_text=_("Per token."),
    )
    rate_burst = forms.IntegerField(
        label=_("Burst"),
        required=False,
        min_value=1,
        max_value=FASTEST,
        widget=forms.NumberInput(attrs={"placeholder": _("as per second")}),
        help_text=_("Requests allowed at once after a pause."),
    )


class WorkspaceForm(WorkspaceFields, OpenForm):
    """The settings of a workspace that is there."""

    nothing: ClassVar = {"rate_limit": _("no limit"), "rate_burst": _("as per second")}

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, initial=settings_of(workspace), **kwargs)
        self.workspace = workspace

    def changes(self) -> dict[str, Any]:
        """What differs from the workspace as it is."""
        held = settings_of(self.workspace)
        return {name: self.cleaned_data[name] for name in SETTINGS if self.cleaned_data[name] != held[name]}


class NewWorkspaceForm(WorkspaceFields):
    """A workspace to make."""

    name = forms.CharField(
        label=_("Name"),
        max_length=50,
        validators=[
            RegexValidator(
                rf"^{naming.NAME}\Z",
                _("Letters, digits, dots, dashes and underscores; starts with a letter or a digit."),
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
