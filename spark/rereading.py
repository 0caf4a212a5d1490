"""How a reader of the history begins again where it is rewritten under it."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from spark.batches import HistoryFile
from spark.sentences import said_by
from spark.turns import TURNS

_MOVED_ON = re.compile(
    r"\[(FAILED_READ_FILE\.FILE_NOT_EXIST|FAILED_READ_FILE\.NO_HINT|PATH_NOT_FOUND)\]"
    r"|(An exception was thrown from the Python worker|\[PYTHON_\w+\]).*^([\w.]+\.)?HistoryMovedOn: "
    r"|Job aborted .*(\[FAILED_READ_FILE\.(FILE_NOT_EXIST|NO_HINT)\]|^([\w.]+\.)?HistoryMovedOn: )",
    re.DOTALL | re.MULTILINE,
)
"""How Spark's errors begin where a reader's files were rewritten, or the log went on into the history, under it.

Further on an error may tell a value, and a value may say anything.
"""

ATTEMPTS = 4
"""How often something is read when the history moves on under it."""

Found = TypeVar("Found")


class HistoryMovedOn(RuntimeError):
    """Something of what a reader was about to read was rewritten, or went from the log into the history, under it."""


class HistoryUnread(RuntimeError):
    """Files of the history could not be read; the message is a sentence for a person."""


def moved_on(error: BaseException) -> bool:
    """Whether a read failed only because the history moved on under it: begun again it finds where things are now."""
    return isinstance(error, HistoryMovedOn) or any(_MOVED_ON.match(said) for said in said_by(error))


def unread(error: BaseException, files: Callable[[], Iterable[HistoryFile]]) -> HistoryFile | None:
    """The file of these at which a read failed, as it is not there or damaged; None where it failed otherwise."""
    said = str(error)
    if not moved_on(error) and "FAILED_READ_FILE" not in said:
        return None
    return next((file for file in files() if file.path in said), None)


def begun_again(read: Callable[[], Found], *, files: Callable[[], Iterable[HistoryFile]]) -> Found:
    """What a reader finds who looks up the files that count; it is begun again where the history moves on under it.

    The next rewrite waits for one that was begun again.

    Args:
        files: gives those that count, to name one that cannot be read.

    Raises:
        HistoryUnread: the history moved on each time, or a file is not there or damaged.
    """
    try:
        return _begun_again(read)
    except Exception as error:
        lost = unread(error, files)
        if lost is not None:
            raise HistoryUnread(
                f"The history lacks offsets {lost.first} to {lost.last} of a stream: "
                f"its file {lost.path} is not there, or is damaged."
            ) from error
        if moved_on(error):
            raise HistoryUnread("The history was rewritten each time this was read; try again.") from error
        raise


def _begun_again(read: Callable[[], Found]) -> Found:
    try:
        return read()
    except Exception as error:
        if not moved_on(error):
            raise
    with TURNS.of_reader():
        for _ in range(ATTEMPTS - 2):
            try:
                return read()
            except Exception as error:
                if not moved_on(error):
                    raise
        return read()
