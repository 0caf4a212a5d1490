"""An HTTP client that outlives a restart of the server: the same request again until there is an answer.

Only for requests that may be sent twice: messages carry ids, and the rest of what the demo sends is idempotent.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

PATIENCE_S = 60.0
ANSWER_TIMEOUT_S = 15.0
PAUSES_S = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Before each further attempt; the last repeats."""

AWAY = frozenset({502, 503, 504})
"""Answers that say: not now."""


class Refused(Exception):
    """The server said no; the message is one sentence for a person.

    Attributes:
        status: of HTTP.
        code: the API's, or "".
    """

    def __init__(self, sentence: str, *, status: int, code: str) -> None:
        super().__init__(sentence)
        self.status, self.code = status, code


class Silent(Exception):
    """There was no answer for as long as we wait; the message is one sentence for a person."""


class Server:
    """One connection to an OKMQ server, made again when it breaks.

    Args:
        url: such as ``http://127.0.0.1:8000``.
        token: of the API.
        say: shows one line to the person who waits.
        patience_s: how long to go on asking without an answer.

    Raises:
        ValueError: the URL or the token cannot be used; the message is one sentence.
    """

    def __init__(
        self, url: str, *, token: str, say: Callable[[str], None], patience_s: float = PATIENCE_S
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url!r} is not an address such as http://127.0.0.1:8000.")
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError("The token is not one: it has blanks or characters beyond ASCII.")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.url = url.rstrip("/")
        self._connection = kind(parts.hostname, parts.port, timeout=ANSWER_TIMEOUT_S)
        self._path = f"{parts.path.rstrip('/')}/api/v1"
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._say = say
        self._patience_s = patience_s

    def call(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Send a request until it is answered; the answer's JSON.

        Raises:
            Refused: the answer is a refusal.
            Silent: no answer in time.
        """
        failed_since: float | None = None
        attempts = 0
        while True:
            try:
                status, headers, data = self._once(method, path, body)
                problem = f"it answers {status}" if status in AWAY else ""
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                problem = _reason(error)
            if not problem and status != 429:
                if failed_since is not None and attempts > 1:
                    self._say(f"{self.url} answers again after {time.monotonic() - failed_since:.1f} s.")
                return _settled(method, path, status=status, data=data)
            if not problem:
                _rest(_seconds(headers.get("Retry-After")))
                failed_since, attempts = None, 0
                continue
            failed_since = failed_since or time.monotonic()
            attempts += 1
            if attempts == 2:  # one lost connection is met silently
                self._say(f"{self.url} does not answer ({problem}); trying again for {self._patience_s:g} s.")
            if time.monotonic() - failed_since >= self._patience_s:
                raise Silent(
                    f"{self.url} gave no answer for {self._patience_s:g} s ({problem}); "
                    "start OKMQ (make run) and run this again, it goes on where it was."
                )
            _rest(PAUSES_S[min(attempts, len(PAUSES_S)) - 1])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, http.client.HTTPMessage, bytes]:
        self._connection.request(method, self._path + path, body, self._headers)
        response = self._connection.getresponse()
        return response.status, response.headers, response.read()


def _settled(method: str, path: str, *, status: int, data: bytes) -> Any:
    try:
        answer = json.loads(data) if data else None
    except ValueError:
        answer = None
    if status < 300:
        return answer
    error = answer.get("error", {}) if isinstance(answer, dict) else {}
    sentence = error.get("message") or f"{method} {path} was answered with {status}, which OKMQ does not do."
    raise Refused(sentence, status=status, code=error.get("code", ""))


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError):
        return f"nothing within {ANSWER_TIMEOUT_S:.0f} s"
    if isinstance(error, http.client.RemoteDisconnected | ConnectionError):
        return "connection lost"
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _seconds(text: str | None) -> float:
    return min(60.0, max(0.05, float(text))) if text and text.isdigit() else 1.0


def _rest(seconds: float) -> None:
    threading.Event().wait(seconds)
