"""A member of a group as a process of its own, so that it can be killed; it notes all it saw in a file, line by line.

    python -m tests.streams.groups.member PORT TOKEN PATH NAME FILE

It ends by itself at SIGTERM, between two fetches. Standard library only: ten of them start in a moment.
"""

import http.client
import itertools
import json
import os
import signal
import sys
import threading
import time
from typing import Any

LIMIT = 20
WAIT_S = 0.2
NACK_EVERY = 13
"""One message of so many is given back at its first delivery."""


class Member:
    """Fetches, gives a few back, acknowledges the rest by lease."""

    def __init__(self, port: int, token: str, path: str, name: str, file: str) -> None:
        self._port, self._path, self._name = port, path, name
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._notes = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._connection: http.client.HTTPConnection | None = None
        self._leaves = threading.Event()

    def run(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self._leaves.set())
        while not self._leaves.is_set():
            began = time.time()
            status, got = self._post("fetch", limit=LIMIT, wait=WAIT_S, consumer=self._name)
            if status != 200:
                self._leaves.wait(0.1)
                continue
            deliveries = [(each["offset"], each["deliveries"], each["lease"], each["id"]) for each in got]
            self._note("fetch", began, deliveries)
            back = [each for each in deliveries if each[0] % NACK_EVERY == 0 and each[1] == 1]
            if back:
                # Noted first: killed after it was heard and before it is noted, it would be held against the group.
                self._note("nack", time.time(), [each[:2] for each in back])
                self._post("nack", leases=[each[2] for each in back])
            self._ack([each for each in deliveries if each not in back])

    def _ack(self, deliveries: list[Any]) -> None:
        """All at once; where one lease is lost, one by one."""
        if not deliveries:
            return
        began = time.time()
        status, answer = self._post("ack", leases=[each[2] for each in deliveries])
        if status == 200 and answer["acked"] == len(deliveries):
            self._note("acked", began, [each[0] for each in deliveries])
        elif status == 409 and len(deliveries) > 1:
            for each in deliveries:
                self._ack([each])

    def _note(self, what: str, began: float, about: Any) -> None:
        os.write(self._notes, json.dumps([what, began, time.time(), about]).encode() + b"\n")

    def _post(self, verb: str, **fields: Any) -> tuple[int, Any]:
        """Status and answer; 0 when nobody answered."""
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=15)
            self._connection.request("POST", f"{self._path}/{verb}", json.dumps(fields), self._headers)
            answer = self._connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException):
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            return 0, None


if __name__ == "__main__":
    port, *rest = itertools.islice(sys.argv, 1, None)
    Member(int(port), *rest).run()
