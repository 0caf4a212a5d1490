"""The runs that `make test` is made of: together they leave out no test, and none runs twice."""

import itertools
import runpy
import tomllib
from pathlib import PurePath

import pytest

from okmq.env import PROJECT
from tests.conftest import ONLY_IN, where_it_has_to_lie

MARKS = ("long", "alone", "spark", "e2e", "running", "install")


def runs(suite: str) -> list[list[str]]:
    """What each run of a suite is started with."""
    script = runpy.run_path(str(PROJECT / "scripts" / "test-all"))
    return [words for stage in script["SUITES"][suite] for words in stage.values()]


def is_chosen(words: list[str], folder: str, marks: tuple[str, ...]) -> bool:
    """Whether a run that is started with these words takes a test of this folder that has these marks."""
    _, expression, *places = words
    left_out = [each.removeprefix("--ignore=") for each in places if each.startswith("--ignore=")]
    taken = [each for each in places if not each.startswith("--ignore=")] or ["tests"]
    return (
        any(PurePath(folder).is_relative_to(each) for each in taken)
        and not any(PurePath(folder).is_relative_to(each) for each in left_out)
        and bool(eval(expression, {mark: mark in marks for mark in MARKS}))
    )


@pytest.mark.parametrize("suite", ["all", "fast"])
def test_a_run_is_started_with_an_expression_and_folders_that_there_are(suite: str) -> None:
    for option, expression, *places in runs(suite):
        assert option == "-m"
        eval(expression, dict.fromkeys(MARKS, False))
        for place in places:
            assert (PROJECT / place.removeprefix("--ignore=")).is_dir()


COMBINED = [each for count in range(len(MARKS) + 1) for each in itertools.combinations(MARKS, count)]


def may_lie_in(folder: str, marks: tuple[str, ...]) -> bool:
    """Whether a test of this folder may have these marks."""
    return all(folder == ONLY_IN.get(mark, folder) for mark in marks)


@pytest.mark.parametrize(
    ("folder", "marks"),
    [
        (folder, marks)
        for folder in ("tests", "tests/spark", "tests/dashboard", "tests/streams/log", *ONLY_IN.values())
        for marks in COMBINED
        if may_lie_in(folder, marks)
    ],
    ids=str,
)
def test_a_test_with_these_marks_is_in_one_run(folder: str, marks: tuple[str, ...]) -> None:
    assert sum(is_chosen(each, folder, marks) for each in runs("all")) == 1


def test_a_test_that_lies_where_the_run_of_its_mark_does_not_look_is_refused() -> None:
    for mark, folder in ONLY_IN.items():
        assert where_it_has_to_lie(PROJECT / folder / "deeper" / "test_x.py", [mark, "long"]) is None
        assert where_it_has_to_lie(PROJECT / "tests" / "test_x.py", [mark, "long"]) == folder
    assert where_it_has_to_lie(PROJECT / "tests" / "test_x.py", ["long"]) is None


@pytest.mark.parametrize("folder", ["tests", "tests/spark", "tests/dashboard", "tests/streams/log"])
def test_the_look_between_two_edits_takes_each_once_and_nothing_long(folder: str) -> None:
    assert sum(is_chosen(each, folder, ()) for each in runs("fast")) == 1
    assert not any(is_chosen(each, folder, (mark,)) for each in runs("fast") for mark in MARKS)


def test_the_marks_are_those_that_there_are() -> None:
    told = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"][
        "markers"
    ]
    assert {line.partition(":")[0] for line in told} == set(MARKS)
