"""What one method of one path takes and gives: declared once, checked before the handler, shown in the schema."""

from dataclasses import dataclass, field
from typing import Any

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
        body: the object that comes in, or a hand-written schema of it; None takes no body.
        body_optional: nothing sent is taken for ``{}``.
        status, answer, many: of success; the answer is a serializer, a hand-written schema, or None for nothing.
        refusals: codes that it may answer, beside those that every call may.
        examples: of the body.
    """

    id: str
    summary: str
    scope: str | None = None
    query: type[Strict] = NothingAsked
    body: type[Strict] | dict[str, Any] | None = None
    body_optional: bool = False
    status: int = 200
    answer: Any = None
    many: bool = False
    also: dict[int, str] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()
    description: str = ""
    examples: dict[str, Any] = field(default_factory=dict)
