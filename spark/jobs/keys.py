"""Prints the most frequent keys of a stream, counted over its whole history.

python -m spark.jobs.keys flights --top 20
"""

import argparse
from contextlib import closing

from spark.history import History
from spark.jobs.settings import JobSettings, main_session
from spark.transforms.keys import messages_by_key
from streams.log import config


def main() -> None:
    """Count with the settings of the environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stream")
    parser.add_argument("--workspace", default="default")
    parser.add_argument("--top", type=int, default=20)
    asked = parser.parse_args()
    settings = JobSettings.from_environ()
    with closing(settings.log()) as log:
        registered = log.run(config.streams())
    found = [each for each in registered if (each.workspace, each.name) == (asked.workspace, asked.stream)]
    if not found:
        raise SystemExit(f"There is no stream {asked.stream!r} in workspace {asked.workspace!r}.")
    with main_session(settings) as session:
        history = History(session, settings.history_url)
        for row in messages_by_key(history.messages(stream_id=found[0].stream_id)).limit(asked.top).collect():
            print(f"{row.key or '(no key)':40} {row.messages:>12} {row.bytes:>14}")


if __name__ == "__main__":
    main()
