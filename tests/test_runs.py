"""The runs that `make test` is made of: together they leave out no test, and none runs twice."""

import itertools
import runpy
import tomllib

import pytest

from okmq.env import PROJECT

MARKS = ("long", "alone", "spark", "e2e", "running", "install")


def runs(suite: str) -> list[list[str]]:
    """What each run of a suite is started with."""
    script = runpy.run_path(str(PROJECT / "scripts" / "test-all"))
    return [words for stage in script["SUITES"][suite] for words in stage.values()]


def choosing(suite: str) -> list[str]:
    """The expression over marks of each run of a suite."""
    return [words[words.index("-m") + 1] for words in runs(suite)]


def is_chosen(expression: str, marks: tuple[str, ...]) -> bool:
    return bool(eval(expression, {mark: mark in marks for mark in MARKS}))


@pytest.mark.parametrize(
    "marks",
    [each for count in range(len(MARKS) + 1) for each in itertools.combinations(MARKS, count)],
    ids=str,
)
def test_a_test_with_these_marks_is_in_one_run(marks: tuple[str, ...]) -> None:
    assert sum(is_chosen(each, marks) for each in choosing("all")) == 1


def test_the_marks_are_those_that_there_are() -> None:
    told = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"][
        "markers"
    ]
    assert {line.partition(":")[0] for line in told} == set(MARKS)


def test_the_look_between_two_edits_takes_folders_apart_and_nothing_long() -> None:
    (chosen,) = set(choosing("fast"))
    assert is_chosen(chosen, ())
    assert not any(is_chosen(chosen, (mark,)) for mark in MARKS)
    *apart, rest = runs("fast")
    assert rest[2:] == [f"--ignore={folder}" for _, _, folder in apart]
