"""How both planes refuse: one shape, one table of codes.

A refusal is ``{"error": {"code", "message", "details"}}``; ``code`` is stable, ``message`` a sentence for a person.
Where JetStream has a number for the same refusal, it stands in ``details.err_code``.
"""

import logging
import time
from typing import Any

from streams.log import errors as log_errors

TELL_EVERY_S = 10.0

log = logging.getLogger(__name__)
_told_at: dict[str, float] = {}

STATUS = {
    "invalid_json": 400,
    "validation_error": 400,
    "batch_too_large": 400,
    "offset_out_of_range": 400,
    "query_refused": 400,
    "invalid_host": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "operation_denied": 403,
    "quota_exceeded": 403,
    "not_found": 404,
    "stream_not_found": 404,
    "group_not_found": 404,
    "message_not_found": 404,
    "token_not_found": 404,
    "user_not_found": 404,
    "workspace_not_found": 404,
    "policy_not_found": 404,
    "alert_rule_not_found": 404,
    "run_not_found": 404,
    "query_not_found": 404,
    "filter_not_found": 404,
    "removal_not_found": 404,
    "replay_not_found": 404,
    "erasure_not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "stream_exists": 409,
    "group_exists": 409,
    "user_exists": 409,
    "workspace_exists": 409,
    "policy_exists": 409,
    "alert_rule_exists": 409,
    "policy_in_use": 409,
    "query_cancelled": 409,
    "ambiguous_key": 409,
    "lease_lost": 409,
    "removed_since": 409,
    "removal_taken": 409,
    "removal_over": 409,
    "stream_full": 409,
    "wrong_last_offset": 409,
    "wrong_last_id": 409,
    "wrong_last_key_offset": 409,
    "history_off": 409,
    "replay_state": 409,
    "message_too_large": 413,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "query_failed": 422,
    "rate_limited": 429,
    "head_too_large": 431,
    "internal_error": 500,
    "store_unavailable": 503,
    "stream_damaged": 503,
    "query_lost": 503,
}


class Refusal(Exception):
    """An answer that is not a success.

    Args:
        code: a key of ``STATUS``.
        message: a sentence for a person.
        details: facts for a program.
        headers: header fields that the answer carries, such as ``Allow``.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        headers: dict[str, str] | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details
        self.headers = dict(headers or {})
        if code == "unauthorized":
            self.headers.setdefault("WWW-Authenticate", "Bearer")
        if code in {"store_unavailable", "query_lost"}:
            self.headers.setdefault("Retry-After", "1")

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def body(self) -> dict[str, Any]:
        """What is answered; whatever the caller sent to be repeated in it, it can be written as JSON."""
        error = {"code": self.code, "message": self.message, "details": self.details}
        return {"error": {name: _writable(value) for name, value in error.items()}}


def _writable(value: Any) -> Any:
    """A value as JSON in UTF-8 can carry it: a lone surrogate becomes a question mark."""
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case dict():
            return {_writable(str(name)): _writable(each) for name, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_writable(each) for each in value]
        case None | bool() | int() | float():
            return value
        case _:
            return _writable(str(value))


def refusal_of(error: log_errors.LogError, *, stream: str = "", group: str = "") -> Refusal:
    """The answer for what the log refused."""
    match error:
        case log_errors.DoneInPart():
            refusal = refusal_of(error.why, stream=stream, group=group)
            before = f" {error.messages:,} message{'s' * (error.messages != 1)} of it had already been done."
            return Refusal(refusal.code, refusal.message + before, **refusal.details)
        case log_errors.StreamNotFound():
            return stream_not_found(stream)
        case log_errors.MessageNotFound():
            return Refusal("message_not_found", "There is no message at this offset.", err_code=10037)
        case log_errors.GroupNotFound():
            return group_not_found(group)
        case log_errors.LeaseLost():
            return Refusal(
                "lease_lost",
                f"Lease {error.lease!r} has passed to another delivery; nothing was done.",
                lease=error.lease,
            )
        case log_errors.RemovalNotFound():
            return Refusal(
                "removal_not_found",
                "There is no such removal, or it can no longer be undone: it has expired, a limit has passed it, "
                "or it was already undone.",
            )
        case log_errors.RemovalOver():
            return Refusal(
                "removal_over",
                "The removal ended while it was in progress: it was to be undone, was made final, or a limit or a "
                "permanent purge passed it. What it had not reached is still there.",
            )
        case log_errors.RemovedSince():
            return Refusal(
                "removed_since",
                f"Undo removal {error.later} first: it came after this one.",
                removal=error.later,
            )
        case log_errors.RemovalTaken():
            return Refusal(
                "removal_taken",
                f"A limit or a permanent purge has removed part of it: {error.left:,} of {error.messages:,} messages "
                'can still be restored. Send "partial": true to restore what is left.',
                left=error.left,
                messages=error.messages,
            )
        case log_errors.StreamSealed():
            return Refusal(
                "operation_denied",
                f"Stream {stream!r} is sealed: it is read-only.",
                err_code=10109,
            )
        case log_errors.OperationDenied():
            number = {"deny_delete": 10057, "deny_purge": 10110}.get(error.switch, 10057)
            return Refusal(
                "operation_denied",
                f"Stream {stream!r} has {error.switch} set.",
                switch=error.switch,
                err_code=number,
            )
        case log_errors.MessageTooLarge():
            return Refusal(
                "message_too_large",
                f"The body of message {error.index} has {error.size_bytes:,} bytes; "
                f"the stream takes {error.limit_bytes:,}.",
                index=error.index,
                size=error.size_bytes,
                limit=error.limit_bytes,
            )
        case log_errors.StreamFull():
            return Refusal(
                "stream_full",
                f"Stream {stream!r} is full: {error.limit} is {error.allowed}.",
                limit=error.limit,
                allowed=error.allowed,
                err_code=10077,
            )
        case log_errors.OffsetOutOfRange():
            return Refusal(
                "offset_out_of_range",
                f"The last offset is {error.last_offset}.",
                last_offset=error.last_offset,
            )
        case log_errors.WrongExpectation():
            return _wrong_expectation(error)
        case log_errors.Damaged():
            _tell("holds what cannot be read", str(error))
            return _damaged(error, stream=stream)
        case log_errors.StreamLost():
            return Refusal(
                "store_unavailable",
                "The memory server has lost this stream, and it is about to be recreated; try again.",
            )
        case log_errors.StoreFull():
            _tell("is full", str(error))
            return Refusal(
                "store_unavailable",
                "The message store is full: it accepts nothing new until something is removed.",
                full=True,
            )
        case _:
            _tell("does not answer", str(error))
            return Refusal("store_unavailable", "The message store is not responding; try again.")


def _damaged(error: log_errors.Damaged, *, stream: str) -> Refusal:
    about = f"group {error.group!r} of stream {stream!r}" if error.group else f"stream {stream!r}"
    if not stream:
        about = f"key {error.key!r}" if error.key else "several streams"
    return Refusal(
        "stream_damaged",
        f"Something that the message store holds of {about} cannot be read. manage.py okmq_fsck says what it is; "
        "with --repair it restores what can be derived.",
        reason=str(error),
    )


def _tell(state: str, cause: str) -> None:
    """Log why the store cannot be used: callers are told no addresses, and an outage is no flood of lines."""
    now = time.monotonic()
    if now - _told_at.get(cause, -TELL_EVERY_S) >= TELL_EVERY_S:
        _told_at.clear()
        _told_at[cause] = now
        log.warning("The message store %s: %s", state, cause)


def stream_not_found(name: str) -> Refusal:
    """No such stream here, or one of another workspace: the answer is the same."""
    return Refusal("stream_not_found", f"There is no stream {name!r}.", stream=name, err_code=10059)


def policy_not_found(name: str) -> Refusal:
    """No such retention policy in this workspace."""
    return Refusal("policy_not_found", f"There is no policy {name!r}.", policy=name)


def alert_rule_not_found(name: str) -> Refusal:
    """No such alert rule in this workspace."""
    return Refusal("alert_rule_not_found", f"There is no alert rule {name!r}.", rule=name)


def group_not_found(name: str) -> Refusal:
    """No such consumer group on this stream."""
    return Refusal("group_not_found", f"There is no consumer group {name!r}.", group=name)


def _wrong_expectation(error: log_errors.WrongExpectation) -> Refusal:
    differing = {
        "last_offset": f"The last offset is {error.last_offset}.",
        "last_id": f"The id of the last message is {error.last_id!r}.",
        "last_key_offset": "The last offset of a key is a different one.",
    }
    return Refusal(
        f"wrong_{error.kind}",
        differing[error.kind],
        last_offset=error.last_offset,
        last_id=error.last_id,
        last_key_offset=error.last_key_offset,
        err_code=10070 if error.kind == "last_id" else 10071,
    )
