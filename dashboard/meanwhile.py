"""Forms of settings that somebody else may save while they are open: what was saved meanwhile is told, not taken back.

The form carries the texts that its page was opened with. A field that a person has left as it was follows what is saved
now; one that was changed keeps what was entered. What is sent back as it was shown stays as it is saved, whatever its
text would be read as.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _

OPENED = "opened"


@dataclass(frozen=True, slots=True)
class Moved:
    """A setting as it was and as it is or is to be, in words."""

    label: str
    before: str
    now: str


class OpenForm(forms.Form):
    """A form whose ``initial`` is what is saved now.

    Args:
        fixed: fields that cannot be changed here.

    Attributes:
        nothing: what an empty field means, by name, where it means something.
    """

    nothing: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self, data: QueryDict | None = None, *args: Any, fixed: Collection[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(data, *args, **kwargs)
        for name in fixed:
            self.fields[name].disabled = True
        self._before: dict[str, str] = {}
        opened = _opened(data.get(OPENED)) if data is not None else None
        if data is None or opened is None:
            return
        now = self._now()
        self._before = {name: opened.get(name, "") for name in now if opened.get(name, "") != now[name]}
        merged = data.copy()
        for name, text in self._before.items():
            if self._sent(name) == text:
                self._follow(merged, name)
        for name in self.unmoved(opened):
            self._before.pop(name, None)
        self.data = merged

    @classmethod
    def of_address(cls, query: QueryDict, **kwargs: Any) -> Self:
        """What an address asks for: a form as a page sent it, or what is saved, with the fields that it names."""
        if OPENED in query:
            return cls(query, **kwargs)
        held, whole = cls(**kwargs), QueryDict(mutable=True)
        for name in held.fields:
            if name in query:
                whole.setlist(name, query.getlist(name))
            else:
                held._follow(whole, name)
        return cls(whole, **kwargs)

    def unmoved(self, opened: Mapping[str, str]) -> Collection[str]:
        """Fields whose text is another than when the page was opened, though nobody has changed them."""
        return ()

    def saved(self) -> Mapping[str, Any]:
        """The values that are saved now, by field; nothing of what is not there yet."""
        return {}

    def clean(self) -> dict[str, Any]:
        cleaned, shown = super().clean() or self.cleaned_data, self._now()
        for name, value in self.saved().items():
            if name not in shown or self._sent(name) == shown[name]:
                self.errors.pop(name, None)
                cleaned[name] = value
        return cleaned

    @property
    def opened(self) -> str:
        """What its page sends back: the texts as they are saved now, without the empty ones."""
        return json.dumps({name: text for name, text in self._now().items() if text})

    @property
    def moved(self) -> list[Moved]:
        """What somebody else has changed since the page was opened."""
        now = self._now()
        return [
            Moved(str(self.fields[name].label), self._said(name, before), self._said(name, now[name]))
            for name, before in self._before.items()
        ]

    @property
    def unsaved(self) -> dict[str, str]:
        """The texts that differ from what is saved now, by name: what an address has to say to show them again."""
        return {
            name: typed
            for name, text in self._now().items()
            if self.is_bound and (typed := self._sent(name)) != text
        }

    def _now(self) -> dict[str, str]:
        """The text of every field that can be changed, as it is saved now."""
        return {
            name: self._shown(name, self.get_initial_for_field(field, name))
            for name, field in self.fields.items()
            if not field.disabled
        }

    def _sent(self, name: str) -> str:
        return self._read(name, self.fields[name].widget.value_from_datadict(self.data, {}, name))

    def _shown(self, name: str, value: Any) -> str:
        """A value as a page shows it: a field of one line drops line ends."""
        text = self._read(name, value)
        return text if isinstance(self.fields[name].widget, forms.Textarea) else text.replace("\n", "")

    def _read(self, name: str, value: Any) -> str:
        """A value as text, without its edges where they do not count."""
        text = _text(value)
        return text.strip() if getattr(self.fields[name], "strip", True) else text

    def _follow(self, data: QueryDict, name: str) -> None:
        """Let a field say what is saved now."""
        saved = self.get_initial_for_field(self.fields[name], name)
        if isinstance(saved, list):
            data.setlist(name, saved)
        else:
            data[name] = self._shown(name, saved)

    def _said(self, name: str, text: str) -> str:
        field = self.fields[name]
        if isinstance(field, forms.BooleanField):
            return _("on") if text else _("off")
        if isinstance(field, forms.ChoiceField) and not isinstance(field, forms.MultipleChoiceField):
            return str(dict(field.choices).get(text, text))  # type: ignore[arg-type]  # ours have no groups
        return text or str(self.nothing.get(name, "–"))


def _text(value: Any) -> str:
    """A field's value as it stands in the page, of several, all; line ends as ours, where a browser sends CRLF."""
    if isinstance(value, list):
        return ", ".join(value)
    if value is None or isinstance(value, bool):
        return "true" if value else ""
    return str(value).replace("\r\n", "\n").replace("\r", "\n")


def _opened(text: str | None) -> Mapping[str, str] | None:
    """What ``opened`` wrote; None where no page did."""
    try:
        said = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) and all(isinstance(each, str) for each in said.values()) else None
