"""What a purge is asked for, as both planes read it."""

from streams.errors import Refusal


def demand_one(*, offset: int | None, keep: int | None) -> None:
    """Raises Refusal ``validation_error`` where both are sent."""
    if offset is not None and keep is not None:
        raise Refusal(
            "validation_error", "Send offset or keep, not both.", fields=["offset", "keep"], err_code=10003
        )


def kept_s(asked: bool | None, *, undo_s: int, for_good: str, may_for_good: bool) -> int:
    """For how long what is removed is to be kept; 0 removes it for good, which is what the guide promises.

    Args:
        asked: whether it is to be undone; None is not asked.
        undo_s: for how long it can be, here.
        for_good: the scope that it takes to remove for good; ``may_for_good``: whether the caller has it.

    Raises:
        Refusal: ``validation_error``; ``forbidden`` where it would be for good and the caller may not.
    """
    if asked and not undo_s:
        raise Refusal("validation_error", "undo: Undo is switched off: OKMQ_UNDO is 0.", fields=["undo"])
    if asked or (asked is None and not may_for_good and undo_s):
        return undo_s
    if not may_for_good:
        raise Refusal(
            "forbidden", f"Removing messages permanently needs the scope {for_good!r}.", scope=for_good
        )
    return 0
