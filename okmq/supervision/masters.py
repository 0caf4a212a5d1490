"""Whether a standalone master of Spark answers. Spark itself asks one that does not for minutes, and then just ends."""

import socket

SCHEME = "spark://"
WITHIN_S = 2.0


class MasterAway(Exception):
    """No master answers; the message is a sentence for a person."""

    def __init__(self, master: str) -> None:
        super().__init__(f"The master of Spark, {master}, does not answer; runs wait until it does.")


def is_away(master: str) -> bool:
    """Whether this is the address of a standalone master, or of several, none of which takes a connection."""
    if not master.startswith(SCHEME):
        return False
    return not any(_answers(place) for place in master.removeprefix(SCHEME).split(","))


def _answers(place: str) -> bool:
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), WITHIN_S).close()
    except (OSError, OverflowError):  # the latter is a port that there cannot be
        return False
    return True
