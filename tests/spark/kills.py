"""The archive under many kills: ``python -m tests.spark.kills --kills 200 --seed 2``."""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic

from okmq.instance import Broken
from okmq.prove.archived import KINDS
from okmq.prove.faults import NotBack
from okmq.prove.load import Unfinished
from okmq.prove.spark_kills import OfSpark, under_kills_of_spark
from tests.spark.cluster import cluster

STOPPED = 130


def told(apart: OfSpark) -> str:
    """The counts, in one line."""
    counts = ", ".join(f"{len(apart.found[kind])} {kind}" for kind in KINDS)
    return f"{len(apart.struck)} kills, {apart.messages:,} messages of {apart.streams} streams: {counts}"


def of_a_cluster(run: Callable[..., OfSpark], folder: Path) -> OfSpark:
    """Carry it out on a master and a worker, of which the executor and the worker are killed, too."""
    with cluster(folder) as running:
        return run(
            more={"OKMQ_SPARK_MASTER": running.address, "OKMQ_SPARK_MEMORY": "512m"},
            victims={"an executor": running.executor, "the worker of Spark": lambda: running.worker.pid},
        )


def main() -> int:
    """Carry it out; 0 where nothing was wrong, 1 where something was, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument(
        "--cluster", action="store_true", help="of a master with a worker, which are killed, too"
    )
    parser.add_argument("--minutes", type=float, default=180.0, help="after them nothing more is killed")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # nothing is left behind then, either
    folder, began, keep = Path(tempfile.mkdtemp(prefix="okmq-kills-")), monotonic(), True

    def say(sentence: str) -> None:
        print(f"{monotonic() - began:6.0f} s  {sentence}", flush=True)

    try:
        run = partial(
            under_kills_of_spark,
            folder,
            kills=asked.kills,
            seed=asked.seed,
            within_s=asked.minutes * 60,
            say=say,
        )
        apart = of_a_cluster(run, folder) if asked.cluster else run()
        keep = bool(apart.wrong or apart.load.scene.surprises)
    except KeyboardInterrupt:
        keep = False
        return STOPPED
    except (Broken, NotBack, Unfinished) as error:
        say(str(error))
        return 1
    finally:
        if keep:
            say(f"The folder is kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for sentence in [*apart.wrong[:40], *apart.load.scene.surprises]:
        say(sentence)
    for under_way, count in apart.cut.most_common():
        say(f"{count:4} {under_way}")
    say(told(apart))
    return int(keep)


if __name__ == "__main__":
    sys.exit(main())
