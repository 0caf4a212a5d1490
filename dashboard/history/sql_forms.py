"""What people fill in to ask in SQL."""

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.forms import BootstrapMixin
from streams.services.queries import DEFAULT_ROWS, LONGEST_SQL, MOST_ROWS


class QueryForm(BootstrapMixin, forms.Form):
    """A question, and the name to keep it under."""

    sql = forms.CharField(
        label=_("Query"),
        max_length=LONGEST_SQL,
        strip=False,
        widget=forms.Textarea(
            attrs={
                "rows": 8,
                "class": "mono",
                "spellcheck": "false",
                "autocapitalize": "off",
                "autocomplete": "off",
            }
        ),
    )
    limit = forms.IntegerField(
        label=_("Max rows"),
        min_value=1,
        max_value=MOST_ROWS,
        initial=DEFAULT_ROWS,
        widget=forms.NumberInput(attrs={"class": "w-auto"}),
    )
    name = forms.CharField(
        label=_("Save as"),
        max_length=100,
        required=False,
        strip=False,
        widget=forms.TextInput(attrs={"class": "w-auto"}),
    )
