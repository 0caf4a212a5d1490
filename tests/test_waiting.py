"""The watch that promises in seconds are held against."""

import os
import signal
import subprocess
import sys

import pytest

from okmq.env import PROJECT
from tests.waiting import MOST_STRETCHED, Stopwatch, queued_s, until

WORK_S = "0.6"

# In a process of its own, that nothing is started by but what is named: on one processor, beside what others do.
MEASURED = """
import os, subprocess, sys, time
from tests.waiting import Stopwatch
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
watch = Stopwatch()
if sys.argv[1] == "work":
    while time.process_time() < float(sys.argv[2]): pass
else:
    subprocess.run(["sleep", sys.argv[2]], check=True)
print(watch.wall_s, watch.elapsed_s, watch.wall_s)
"""
# Nobody's child, as another program would be; each ends by itself, if it comes to that.
OTHERS = """
for n in 1 2 3; do
  taskset -c "$1" "$0" -c "while __import__('time').process_time() < 20: pass" > /dev/null 2>&1 &
  echo $!
done
"""


def measured(*words: str) -> tuple[float, float, float]:
    """Seconds on the wall, then on the watch, then on the wall again: the watch takes a while to be read."""
    told = subprocess.run(
        [sys.executable, "-c", MEASURED, *words], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    before_s, elapsed_s, after_s = map(float, told.stdout.split())
    return before_s, elapsed_s, after_s


@pytest.mark.long
def test_time_that_others_take_is_not_there() -> None:
    processor = str(min(os.sched_getaffinity(0)))
    told = subprocess.run(
        ["sh", "-c", OTHERS, sys.executable, processor], capture_output=True, text=True, check=True
    )
    others = [int(pid) for pid in told.stdout.split()]
    try:
        before_s, elapsed_s, _ = measured("work", WORK_S)
    finally:
        for other in others:
            os.kill(other, signal.SIGKILL)
    assert len(others) == 3
    assert before_s > 2 * elapsed_s
    assert elapsed_s >= before_s / MOST_STRETCHED


def test_time_that_is_slept_is_there_also_in_what_was_started() -> None:
    _, elapsed_s, after_s = measured("sleep", "0.4")
    assert after_s >= elapsed_s >= 0.39


def test_processes_that_end_while_they_are_looked_at_are_passed_over() -> None:
    started = [subprocess.Popen(["sleep", "0.05"]) for _ in range(20)]
    try:
        while any(each.poll() is None for each in started):
            assert queued_s()
    finally:
        for each in started:
            each.wait()


def test_what_never_comes_is_told_in_time() -> None:
    watch = Stopwatch()
    with pytest.raises(AssertionError, match=r"not within 0\.1 s: the moon; last answer: 0"):
        until(lambda: 0, within_s=0.1, what="the moon")
    assert watch.wall_s >= 0.1
