"""Log lines as JSON, one object a line: what a person greps and a collector parses."""

import json
import logging
import re
import time
from http import HTTPStatus

from streams.exchange import current

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
}

_TOKEN = re.compile(r"okmq_[A-Za-z0-9_-]{20,}")
"""A token as ``bearer.make`` makes it, wherever a client has written it: in a path, a query, a name."""


class NotRefusedSockets(logging.Filter):
    """Leaves out what uvicorn takes for a fault and is none: a handshake that is refused with an answer over HTTP.

    Anybody may have one refused, and the access log has its line.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.getMessage() != "ASGI callable returned without completing handshake.":
            return True
        exchange = current()
        return exchange is None or exchange.status != HTTPStatus.FORBIDDEN


class JsonFormatter(logging.Formatter):
    """``time, level, logger, message``, inside a request its id, and whatever was passed as ``extra``.

    Control characters are escaped, tokens blotted out.
    """

    def format(self, record: logging.LogRecord) -> str:
        seconds, milliseconds = divmod(int(record.created * 1000), 1000)
        line = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{milliseconds:03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        exchange = current()
        if exchange is not None:
            line["request_id"] = exchange.request_id.decode()
        line.update({name: value for name, value in vars(record).items() if name not in _STANDARD})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _TOKEN.sub("okmq_***", json.dumps(line, default=str, ensure_ascii=True))
