"""What each call of a script costs the server, which nobody else gets an answer from meanwhile."""

from typing import Any

from streams.log import scripts
from streams.log.client import Log, Script


class Weighed(Log):
    """Notes the server's processor time of each script; nobody else comes between the three commands."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.took_ms: list[float] = []

    def _script(self, call: Script) -> Any:
        pipe = self.client.pipeline(transaction=False)
        for command in (("INFO", "cpu"), scripts.call(call, self._looked().told()), ("INFO", "cpu")):
            pipe.execute_command(*command)
        before, reply, after = pipe.execute()
        self.took_ms.append((_used_s(after) - _used_s(before)) * 1000)
        return reply


def _used_s(info: bytes) -> float:
    told = dict(line.split(b":") for line in info.split()[2:])
    return float(told[b"used_cpu_user"]) + float(told[b"used_cpu_sys"])
