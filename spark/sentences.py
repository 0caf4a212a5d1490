"""What Spark says of a query that fails, as one sentence for a person: without codes, plans, traces and settings."""

import re
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

MOST_OF_A_TEXT = 100
"""So many characters are told of a text that is not what it should be."""

MOST_SAID = 1_000
"""A sentence is as long at most: it may tell a value, and a value may be a body."""

NO_EXECUTOR = "Spark's executors ended while this ran, perhaps for want of memory; ask for less."

NO_WORKER = "A Python process of Spark was ended while this ran, perhaps for want of memory; ask again."

LATE_WORKER = "A Python process of Spark did not begin in time, as on a busy machine; ask again."

_OF_WORKERS = {
    "Python worker exited unexpectedly": NO_WORKER,
    "Python worker failed to connect back": LATE_WORKER,
}
"""How Spark's error begins where that was so; further on one may tell a value."""

_OF_A_PROCESS = re.compile(
    r"^(?:\[\w+\] )?An exception was thrown from the Python worker\b.*?\n(?=[\w.]+(?:: |$))", re.DOTALL
)
"""What stands before what an error of Python says of itself: where it was raised, each line of it indented."""

_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\] +")
"""Spark's name of what is wrong, before what it says of it."""

_NAMED = re.compile(r"^\[([A-Z][A-Z0-9_.]+)\] ")
"""The same, and nothing that a JSON text begins with."""

_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
"""Where in a query Spark stood: the line from 1, the character in it from 0."""

NO_PLACE = "line 1 position 0"
"""What Spark says where it has lost the place, as of a name within a lambda function; what begins there needs none."""

_OF_WHAT_WAS_WRITTEN = re.compile(r"^\[[A-Z0-9_.]+\] .*?SQLSTATE: (?:22|42)", re.DOTALL)
"""What Spark says of an expression, or of a value that it cannot take: the classes of SQL for syntax and for data."""

_OUT_OF_MEMORY = re.compile(
    r"Job aborted due to stage failure: [^\n]*?\(TID \d+\) \([^)\n]*\): [\w.]*OutOfMemoryError: ([^\n]*)"
)
"""How Spark tells that a task had no memory, and which memory."""

_OF_SPARK = "[UNABLE_TO_ACQUIRE_MEMORY]"
"""How Spark begins where its own part of the heap has no room; Java has."""

_OF_THE_HEAP = ("Java heap space", "Requested array size", _OF_SPARK)
"""What is said where there was no room for what was asked for; with anything else the JVM is of no use."""

_ADVICE = re.compile(r'\s[A-Z](?:[^."]|\.(?=\S))*"spark\.(?:[^.]|\.(?=\S))*\.?')
"""A sentence that is not the first and names a setting of Spark's: nobody who asks can change one."""

_UPGRADED = re.compile(r"You may get a different result due to the upgrading to Spark >= [\d.]+:\n")
"""What stands before what Spark says of a pattern of dates, which has to do with no upgrade."""

_OVERFLOW = re.compile(r"^(?:\w+ )?overflow\.")
"""All that Spark may say of a value that is too large."""

_RECORD = re.compile(r"Malformed records are detected in record parsing: (.*?)\.\n", re.DOTALL)

_PLACE = re.compile(r" \(start marker at \[Source: .*")
"""Where in a text Jackson stood, behind what it says."""


def of_condition(error: BaseException) -> str | None:
    """What Spark says of what somebody wrote, with a name of its own for what is wrong; None of any other error."""
    if isinstance(error, PySparkException):
        return sentence(error) if _CONDITION.match(str(error)) else None
    return reason(error) if isinstance(error, Py4JJavaError) else None


def sentence(error: PySparkException) -> str:
    """What Spark says of a query, without its code, its plan, its trace and its settings."""
    return _plain(str(error))


def reason(error: Py4JJavaError) -> str | None:
    """Why a query came to no end, of an error that PySpark does not know; None where nothing of it is for a person."""
    try:
        said = list(_causes(error))
    except (Py4JError, OSError):
        return None  # the JVM has just gone
    for _, text in said:
        if text.startswith("Job aborted") and "ExecutorLostFailure" in text:
            return NO_EXECUTOR
        if text.startswith("[MALFORMED_RECORD_IN_PARSING"):
            return _of_a_record(text, said[-1][1])
    kind, text = said[-1]
    if kind == "PatternSyntaxException":
        return f"A regular expression cannot be read: {text.splitlines()[0]}."
    if kind == "StackOverflowError":
        return "It ran out of stack, as a regular expression does on a long text."
    named = [_plain(text) for _, text in said if _CONDITION.match(text)]
    return named[-1] if named else None


def follows_a_statement(error: PySparkException, sql: str) -> bool:
    """Whether what Spark did not understand in a query stands right behind the semicolon of a statement."""
    found = _POSITION.search(str(error))
    lines = sql.splitlines(keepends=True)
    if found is None or int(found[1]) > len(lines):
        return False
    before = "".join(lines[: int(found[1]) - 1]) + lines[int(found[1]) - 1][: int(found[2])]
    return before.rstrip().endswith(";") and before.strip() != ";"


def is_of_what_was_written(error: BaseException) -> bool:
    """Whether somebody's expression is at fault, or a value that it cannot take, and not Spark or what it reads."""
    return any(map(_OF_WHAT_WAS_WRITTEN.match, said_by(error)))


def said_by(error: BaseException) -> Iterator[str]:
    """What an error of Spark's says, and those that caused it: each begins with Spark's name of what is wrong."""
    yield str(error)
    if isinstance(error, Py4JJavaError):
        try:
            yield from (text for _, text in _causes(error))
        except (Py4JError, OSError):
            return  # the JVM has just gone


def kinds(error: BaseException) -> list[str]:
    """The class of an error and of what caused it in Java, each with Spark's name of what is wrong, and none of its
    text.
    """
    told = [(type(error).__name__, "" if isinstance(error, Py4JJavaError) else str(error))]
    try:
        told += _causes(error) if isinstance(error, Py4JJavaError) else ()
    except (Py4JError, OSError):
        pass  # the JVM has just gone
    return [f"{name} {found[1]}" if (found := _NAMED.match(text)) else name for name, text in told]


def of_a_worker(error: BaseException) -> str | None:
    """That Spark failed over a Python process of its own, which says nothing of what was asked; None where not so."""
    found = (
        ours for said in said_by(error) for begins, ours in _OF_WORKERS.items() if said.startswith(begins)
    )
    return next(found, None)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Java had no memory for something."""
    said = _out_of(error)
    return said is not None and not said.startswith(_OF_SPARK)


def is_of_the_heap(error: BaseException) -> bool:
    """Whether the heap had no room for something, and has when that is given up.

    Where what answers us has none, it answers with nothing.
    """
    said = _out_of(error)
    return isinstance(error, Py4JNetworkError) or (said is not None and said.startswith(_OF_THE_HEAP))


def _out_of(error: BaseException) -> str | None:
    """What is said of the memory that there was not; None of any other error."""
    causes = [("", str(error))]
    try:
        causes += _causes(error) if isinstance(error, Py4JJavaError) else ()
    except (Py4JError, OSError):
        return None  # the JVM has just gone
    for kind, text in causes:
        told = _OUT_OF_MEMORY.search(text)
        if told is not None or kind.endswith("OutOfMemoryError"):
            return text if told is None else told[1]
    return None


def _of_a_record(text: str, innermost: str) -> str:
    """That a text is no JSON or CSV; the text itself, where Spark tells it, shows which one."""
    why = _PLACE.sub("", _plain(innermost)).rstrip(".")
    found = _RECORD.search(text)
    record = "" if found is None or found[1] == "[null]" else found[1]
    if len(record) > MOST_OF_A_TEXT:
        record = record[:MOST_OF_A_TEXT] + "…"
    shown = f" ({record})" if record else ""
    return (
        f"A text cannot be parsed: {why}{shown}. "
        "For such a one try_parse_json gives null, as from_json does without the mode FAILFAST."
    )


def _causes(error: Py4JJavaError) -> Iterator[tuple[str, str]]:
    """The class of an error of Java's and what it says, then its causes, the innermost last."""
    found: Any = error.java_exception
    while found is not None:
        yield found.getClass().getSimpleName(), found.getMessage() or ""
        found = found.getCause()


def _plain(text: str) -> str:
    text = _OF_A_PROCESS.sub("A Python process of Spark failed: ", text.strip(), count=1)
    text = _UPGRADED.sub("", text, count=1).split("\n\n", 1)[0].split(";\n", 1)[0].split("\n", 1)[0]
    before, _, after = text.partition("SQLSTATE:")
    before = _CONDITION.sub("", before, count=1)
    place = after.strip().partition(" ")[2].lstrip("; ").strip("()").replace("pos ", "position ")
    said = _OVERFLOW.sub("A value is beyond what its type holds.", _ADVICE.sub("", before.strip()))
    if place and place != NO_PLACE:
        said = f"{said.rstrip('.')} ({place})."
    return said if len(said) <= MOST_SAID else f"{said[: MOST_SAID // 2]} … {said[3 - MOST_SAID // 2 :]}"
