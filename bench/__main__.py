"""``python -m bench``: start everything, measure in rounds, print the tables."""

import argparse
import contextlib
import sys
import tempfile
import traceback
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import (
    browsers,
    crowd,
    expiry,
    group_load,
    live_pages,
    log_of_batches,
    long_past,
    memory,
    pages,
    parked,
    past,
    preview,
    purge,
    report,
)
from bench.loads import PROMISES, all_loads
from bench.measure import Load, Measured, Scene
from bench.product import Product, product
from okmq.instance import Broken


def main() -> int:
    """The exit code: 0, or 1 after one sentence when something did not start or a part of it broke."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each load runs (default: 5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each runs (default: 2)")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="WORD",
        help="loads and scenes whose name contains one of these words, apart by blanks or commas",
    )
    parser.add_argument(
        "--previewed",
        type=int,
        default=preview.MESSAGES,
        metavar="N",
        help="messages under the previews of retention (default: a million)",
    )
    parser.add_argument(
        "--browsed",
        type=int,
        default=pages.MESSAGES,
        metavar="N",
        help="messages of the stream whose pages are asked for (default: a million)",
    )
    parser.add_argument(
        "--remembered",
        type=int,
        default=past.MESSAGES,
        metavar="N",
        help="messages that Spark reads and archives (default: a million)",
    )
    parser.add_argument(
        "--history",
        type=int,
        default=long_past.MESSAGES,
        metavar="N",
        help="messages of history that are counted, shown and asked (default: ten million)",
    )
    parser.add_argument(
        "--live", type=float, default=2.0, metavar="MINUTES", help="how long pages stay open (default: 2)"
    )
    parser.add_argument("--list", action="store_true", help="tell their names and end")
    asked = parser.parse_args()
    words = [word for given in asked.only for word in given.split(",") if word] or [""]
    try:
        with tempfile.TemporaryDirectory(prefix="okmq-bench-") as name, contextlib.ExitStack() as stack:
            folder = Path(name)
            ours = stack.enter_context(product(folder))
            meant = partial(_meant, words)
            scenes = [scene for scene in _scenes(ours, asked) if meant(scene.name)]
            loads = all_loads(ours, folder, stack, seconds=asked.seconds, meant=meant)
            if asked.list:
                print("\n".join([load.name for load in loads] + [scene.name for scene in scenes]))
                return 0
            rounds = _rounds(loads, number=asked.rounds)
            print(report.text(loads, rounds, PROMISES) if loads else report.machine(), flush=True)
            return _play(scenes)
    except Broken as error:
        print(error, file=sys.stderr)
        return 1


def _scenes(ours: Product, asked: argparse.Namespace) -> list[Scene]:
    """Those that leave little behind first."""
    seconds = asked.seconds
    return [
        Scene("memory", partial(memory.memory, ours)),
        Scene("pending", partial(group_load.many_pending, ours)),
        Scene("groups", partial(group_load.many_groups, ours, seconds=seconds)),
        Scene("purge", partial(purge.purge, ours)),
        Scene("expiry", partial(expiry.expiry, ours)),
        Scene("thinning", partial(expiry.thinning, ours)),
        Scene("preview", partial(preview.preview, ours, messages=asked.previewed)),
        Scene("parked polls", partial(parked.parked_polls, ours)),
        Scene("many streams", partial(crowd.crowd, ours, seconds=seconds)),
        Scene("browsers", partial(browsers.browsers, ours)),
        Scene("live pages", partial(live_pages.live_pages, ours, minutes=asked.live)),
        Scene("past", partial(past.past, ours, messages=asked.remembered)),
        Scene("log of batches", log_of_batches.log_of_batches),
        Scene("long history", partial(long_past.long_past, messages=asked.history)),
        Scene("console", partial(pages.pages, ours, messages=asked.browsed)),
    ]


def _meant(words: Sequence[str], name: str) -> bool:
    return any(word in name for word in words)


def _rounds(loads: Sequence[Load], *, number: int) -> list[dict[str, Measured]]:
    rounds: list[dict[str, Measured]] = []
    for at in range(1, number + 1) if loads else ():
        measured = {}
        for load in loads:
            _say(f"round {at}/{number}: {load.name}")
            measured[load.name] = load.run()
        rounds.append(measured)
    return rounds


def _play(scenes: Sequence[Scene]) -> int:
    """Print the figures of each scene when it has ended; one that breaks costs the others nothing.

    Returns:
        1 when a scene broke.
    """
    broken = []
    if scenes:
        print(f"\n{report.FIGURES_HEAD}", flush=True)
    for scene in scenes:
        _say(f"scene: {scene.name}")
        try:
            found = scene.play()
        except Exception:  # whatever it is, it is shown, and the exit code tells it
            broken.append(scene.name)
            print(f"\n{traceback.format_exc()}", file=sys.stderr)
        else:
            print(report.figures(found), flush=True)
    print(file=sys.stderr)
    if broken:
        print(f"Broken: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def _say(what: str) -> None:
    print(f"\r{what:<80}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
