"""What one method of one path takes and gives: declared once, checked before the handler, shown in the schema."""

from dataclasses import dataclass, field
from typing import Any

from rest_framework.serializers import Serializer

from streams.api.fields import Strict
from streams.api.queries import NothingAsked


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of a path.

    Attributes:
        id: the operation's name in the schema.
        summary: one line for a person.
        scope: what the token needs; None lets every known token in.
        query: the query parameters.
        body: the object that comes in; None takes no body.
        body_limit: more than 1 where an array of so many objects is taken too, and then given.
        body_optional: nothing sent is taken for ``{}``.
        status, answer, many: of success; the answer is a serializer, or None for nothing.
        also: other statuses of success, each with a sentence.
        other_answers: what they give, where that is another object than ``answer``.
        refusals: codes that it may answer, beside those that every call may.
        examples: of the body.
    """

    id: str
    summary: str
    scope: str | None = None
    query: type[Strict] = NothingAsked
    body: type[Strict] | None = None
    body_limit: int = 1
    body_optional: bool = False
    status: int = 200
    answer: type[Serializer[Any]] | None = None
    many: bool = False
    also: dict[int, str] = field(default_factory=dict)
    other_answers: dict[int, type[Serializer[Any]]] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()
    description: str = ""
    examples: dict[str, Any] = field(default_factory=dict)
