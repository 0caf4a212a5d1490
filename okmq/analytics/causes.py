"""Errors of Spark, Java and Python as sentences for people, and for the log."""

import re
import traceback
from pathlib import Path

ERROR_LENGTH = 500
# A line of a trace that names an error, without its package, and what it says.
_CAUSE = re.compile(
    r"^(?:: |Caused by: )?(?:[\w$]+\.)*([\w$]*(?:Error|Exception|NotFound|Unavailable|Unreadable|Replaced)): (.+)$",
    re.MULTILINE,
)
# How Spark says that a Python process of its own has gone, where its end was not noticed first.
_WORKER_ENDED = re.compile(r"^(?:IO|Socket)Exception: Broken pipe|Python worker exited unexpectedly")
# What Py4J says of a call that was under way when Java went; of one that Java refused it says why.
_UNANSWERED = re.compile(r"An error occurred while calling [\w.:]+")
SPARK_GONE = "Spark ended by itself while this ran, perhaps for want of memory."
WORKER_ENDED = "A Python process of Spark ended while this ran, perhaps for want of memory."
_WORKER_LATE = "Python worker failed to connect back"
WORKER_LATE = "A Python process of Spark did not begin in time, as on a busy machine."
# What Spark puts around what it says: a name of its own, the ids of a streaming query, a class of SQL's.
_AROUND = re.compile(r"^\[[A-Z0-9_.]+\] (?:Query \[[^\]]*\] terminated with exception: )?|\s*SQLSTATE: \w+$")
_NOT_A_CAUSE = ("An error occurred while calling", "Traceback")


def readable(error: BaseException) -> str:
    """What went wrong in a sentence for a person: of Java's and Python's traces only the innermost cause."""
    from py4j.protocol import Py4JNetworkError

    text = str(error)
    if isinstance(error, ConnectionError | Py4JNetworkError) or _UNANSWERED.fullmatch(text.strip()):
        return SPARK_GONE
    causes = [f"{name}: {said}" for name, said in _CAUSE.findall(text) if not said.startswith(_NOT_A_CAUSE)]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(_WORKER_LATE in each for each in [*lines[:1], *causes]):
        return WORKER_LATE
    said = _AROUND.sub("", [type(error).__name__, *lines[:1], *causes[-1:]][-1])
    return WORKER_ENDED if _WORKER_ENDED.search(said) else said[:ERROR_LENGTH]


def kinds(error: BaseException) -> str:
    """An error for the log: its class, those of what caused it, and where in our code it came from.

    What it says is left out: it may tell a value, and a value may be a body, which the log would have for longer than
    the history.
    """
    from spark import sentences

    found: list[str] = []
    at: BaseException | None = error
    while at is not None:
        found += sentences.kinds(at)
        at = at.__cause__
    places = [
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)
    ]
    return f"{', '.join(found)} ({' > '.join(places)})"
