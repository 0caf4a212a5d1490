"""The settings that come from the environment: one table, typed, read once, loud when wrong.

Django-free, so that the supervisor, a Spark job and the settings module read the same values the same way.
A file ``.env`` in the project's folder is read too; the real environment wins over it.
"""

import hashlib
import ipaddress
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from streams import addresses

PROJECT = Path(__file__).resolve().parent.parent
# A unix socket's path may hold 107 bytes on Linux (sun_path); some room is left for a suffix.
LONGEST_SOCKET_PATH = 100

T = TypeVar("T")


LEAST_SPARK_MEMORY_MB = 480
"""With less Spark does not start: it wants 450 MB behind what the collector holds back."""

_SPARK_MASTER = re.compile(
    r"local(\[(\*|[1-9][0-9]{0,2})(,[1-9][0-9]{0,2})?\])?|yarn|k8s://\S+"
    r"|spark://(\[[0-9A-Fa-f:]+\]|[\w.-]+):[0-9]{1,5}(,(\[[0-9A-Fa-f:]+\]|[\w.-]+):[0-9]{1,5})*"
)


SECRET = frozenset(
    {
        *("OKMQ_ADMIN_PASSWORD", "OKMQ_ADMIN_TOKEN", "OKMQ_SECRET_KEY"),
        *("OKMQ_REDIS_URL", "OKMQ_MEMORY_REDIS_URL", "OKMQ_DATABASE_URL", "OKMQ_MAIL_URL"),
    }
)
"""Variables that are a secret or have one inside: a URL that cannot be read does not tell where its password ends."""


class EnvError(ValueError):
    """A variable holds a value that cannot be used; the message is one sentence for a person."""


@dataclass(frozen=True, kw_only=True)
class Env:
    """Every ``OKMQ_*`` variable, checked. Paths are absolute, times are seconds, sizes are bytes."""

    host: str
    port: int
    data_dir: Path
    redis_url: str
    private_store: bool
    memory_redis_url: str | None
    private_memory: bool
    database_url: str
    admin_password: str | None
    admin_token: str | None
    secret_key: str | None
    allowed_hosts: tuple[str, ...]
    forwarded_allow_ips: str | None
    web_workers: int
    max_connections: int
    access_log: str
    public_metrics: bool
    mail_url: str | None
    mail_from: str
    webhook_private: bool
    spark_master: str
    spark_host: str
    spark_memory: str
    spark_cores: int | None
    spark_idle_s: int
    sql_disk: int
    history: bool
    history_url: str
    history_every_s: int
    history_wait_s: int
    runs_days: int
    fsync: str
    https: bool
    https_strict: bool
    debug: bool
    undo_s: int
    purge_for_good: str

    @property
    def valkey_dir(self) -> Path:
        return self.data_dir / "valkey"

    @property
    def valkey_memory_dir(self) -> Path:
        return self.data_dir / "valkey-memory"

    @property
    def run_dir(self) -> Path:
        return self.data_dir / "run"

    @property
    def log_dir(self) -> Path:
        return self.data_dir / "log"

    @property
    def access_log_file(self) -> Path:
        return self.log_dir / "access.log"

    @property
    def processes_file(self) -> Path:
        return self.run_dir / "processes.json"


def private_socket(data_dir: Path, *, server: str = "valkey") -> Path:
    """The socket of a private server: in the data folder, or in a short private folder when that is too long.

    Args:
        server: ``valkey`` or ``valkey-memory``.
    """
    socket = data_dir / server / "valkey.sock"
    if len(os.fsencode(socket)) <= LONGEST_SOCKET_PATH:
        return socket
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"okmq-{os.getuid()}-{digest}" / f"{server}.sock"


def read_dotenv(path: Path) -> dict[str, str]:
    """``NAME=value`` lines of a file; blank lines and ``#`` comments are passed over, quotes are taken off.

    Raises:
        EnvError: a line is neither.
    """
    values: dict[str, str] = {}
    if not path.is_file():
        return values
    try:
        text_of_file = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EnvError(f"{path} cannot be read: {error}.") from None
    for number, line in enumerate(text_of_file.splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, separator, value = text.partition("=")
        if not separator or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name.strip()):
            raise EnvError(f"{path}, line {number}: expected NAME=value.")
        values[name.strip()] = value.strip().strip("'\"")
    return values


def load(environ: Mapping[str, str] | None = None, *, dotenv: Path | None = PROJECT / ".env") -> Env:
    """Read and check every variable.

    Args:
        environ: where to read from; the process's environment (over ``.env``) when None.
        dotenv: the file with defaults; None reads none.

    Raises:
        EnvError: naming the variable, the value where it is no secret, and what is allowed.
    """
    if environ is None:
        environ = os.environ
    defaults = read_dotenv(dotenv) if dotenv else {}
    values = {**defaults, **environ}
    known: set[str] = set()

    def read(name: str, parse: Callable[[str], T], default: T) -> T:
        known.add(name)
        text = values.get(name, "")
        return default if text == "" else parse_named(name, text, parse)

    data_dir = read(
        "OKMQ_DATA_DIR",
        lambda text: Path(text).expanduser().absolute(),
        PROJECT / "var",
    )
    given_redis = read("OKMQ_REDIS_URL", addresses.of_store, "")
    given_memory = read("OKMQ_MEMORY_REDIS_URL", addresses.of_server, "")
    if given_memory and given_memory == given_redis:
        expected = "expected another server than OKMQ_REDIS_URL names."
        raise _refused("OKMQ_MEMORY_REDIS_URL", given_memory, expected)
    private_memory = not given_redis and not given_memory
    own_memory = f"unix://{private_socket(data_dir, server='valkey-memory')}" if private_memory else None
    found = Env(
        host=read("OKMQ_HOST", str, "127.0.0.1"),
        port=read("OKMQ_PORT", _between(1, 65535), 8000),
        data_dir=data_dir,
        redis_url=given_redis or f"unix://{private_socket(data_dir)}",
        private_store=not given_redis,
        memory_redis_url=given_memory or own_memory,
        private_memory=private_memory,
        database_url=read("OKMQ_DATABASE_URL", _database_url, f"sqlite:///{data_dir / 'okmq.sqlite3'}"),
        admin_password=read("OKMQ_ADMIN_PASSWORD", _at_least(10), None),
        admin_token=read("OKMQ_ADMIN_TOKEN", _admin_token, None),
        secret_key=read("OKMQ_SECRET_KEY", _at_least(32), None),
        allowed_hosts=read("OKMQ_ALLOWED_HOSTS", _names, ("localhost", "127.0.0.1", "[::1]")),
        forwarded_allow_ips=read("OKMQ_FORWARDED_ALLOW_IPS", _addresses, None),
        web_workers=read("OKMQ_WEB_WORKERS", _between(1, 64), 1),
        max_connections=read("OKMQ_MAX_CONNECTIONS", _between(16, 60_000), 10_000),
        public_metrics=read("OKMQ_PUBLIC_METRICS", _switch, False),
        mail_url=read("OKMQ_MAIL_URL", _mail_url, None),
        mail_from=read("OKMQ_MAIL_FROM", str, "okmq@localhost"),
        webhook_private=read("OKMQ_WEBHOOK_PRIVATE", _switch, False),
        access_log=read("OKMQ_ACCESS_LOG", _one_of("file", "stdout", "off"), "file"),
        spark_master=read("OKMQ_SPARK_MASTER", _spark_master, "local[*]"),
        spark_host=read("OKMQ_SPARK_HOST", _spark_host, "127.0.0.1"),
        spark_memory=read("OKMQ_SPARK_MEMORY", _spark_memory, "1g"),
        spark_cores=read("OKMQ_SPARK_CORES", _between(1, 1024), None),
        spark_idle_s=read("OKMQ_SPARK_IDLE", _between(1, 86_400), 600),
        sql_disk=read("OKMQ_SQL_DISK", _disk_size, 10 * 2**30),
        history=read("OKMQ_HISTORY", _switch, True),
        history_url=read("OKMQ_HISTORY_URL", str, str(data_dir / "history")),
        history_every_s=read("OKMQ_HISTORY_EVERY", _between(1, 86_400), 60),
        history_wait_s=read("OKMQ_HISTORY_WAIT", _between(0, 3600), 3600),
        runs_days=read("OKMQ_RUNS_DAYS", _between(1, 36_500), 90),
        fsync=read("OKMQ_FSYNC", _one_of("always", "everysec", "no"), "always"),
        https=read("OKMQ_HTTPS", _switch, False),
        https_strict=read("OKMQ_HTTPS_STRICT", _switch, False),
        debug=read("OKMQ_DEBUG", _switch, False),
        undo_s=read("OKMQ_UNDO", _between(0, 604_800), 3600),
        purge_for_good=read("OKMQ_PURGE_FOR_GOOD", _one_of("manage", "admin"), "manage"),
    )
    # A name that is not known in the environment may be somebody else's; in this file it is mistyped.
    mistyped = sorted(name for name in defaults if name.startswith("OKMQ_") and name not in known)
    if mistyped:
        raise EnvError(f"{dotenv}: {mistyped[0]} is not a setting.")
    return found


def parse_named(name: str, text: str, parse: Callable[[str], T]) -> T:
    """Parse one value; the parser's complaint is completed with the variable's name and, of no secret, the value."""
    try:
        return parse(text)
    except ValueError as error:
        raise _refused(name, text, str(error)) from None


def _refused(name: str, text: str, expected: str) -> EnvError:
    return EnvError(f"{name}: {expected}" if name in SECRET else f"{name}={text!r}: {expected}")


def _between(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise ValueError(f"expected a whole number from {low} to {high}.")
        return int(text)

    return parse


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"expected one of {', '.join(words)}.")
        return text

    return parse


def _switch(text: str) -> bool:
    if text.lower() not in {"on", "off", "1", "0", "true", "false", "yes", "no"}:
        raise ValueError("expected on or off.")
    return text.lower() in {"on", "1", "true", "yes"}


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError("expected host names, separated by commas.")
    return names


def _database_url(text: str) -> str:
    if not text.startswith(("sqlite:///", "postgres://", "postgresql://")):
        raise ValueError("expected a URL that starts with sqlite:/// or postgresql://.")
    return addresses.of_url(text)


def _mail_url(text: str) -> str:
    if not re.fullmatch(r"(smtp|smtps|starttls)://([^@\s]+@)?[^@\s/:]+(:[0-9]{1,5})?", text):
        raise ValueError(
            "expected smtp://, starttls:// or smtps://, user:password@ where needed, and host:port."
        )
    return addresses.of_url(text)


def _admin_token(text: str) -> str:
    if not re.fullmatch(r"[\x21-\x7e]{16,200}", text):
        raise ValueError("expected 16 to 200 visible ASCII characters.")
    return text


def _at_least(characters: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if len(text) < characters:
            raise ValueError(f"expected at least {characters} characters.")
        return text

    return parse


def _addresses(text: str) -> str:
    """Addresses and networks of proxies. Whoever believes all of them takes the first one, which anybody may write."""
    for part in text.split(","):
        try:
            is_everybody = ipaddress.ip_network(part.strip(), strict=False).prefixlen == 0
        except ValueError:
            is_everybody = part.strip() == "*"
            if not is_everybody:
                raise ValueError("expected IP addresses or networks, separated by commas.") from None
        if is_everybody:
            raise ValueError(
                "expected the addresses or networks of your proxies: where everybody is believed, everybody has any "
                "address."
            )
    return text


def _spark_master(text: str) -> str:
    if not _SPARK_MASTER.fullmatch(text):
        raise ValueError("expected local[*], local[2], spark://host:7077, k8s://… or yarn.")
    return text


def _spark_host(text: str) -> str:
    if not re.fullmatch(r"[\w.-]+", text, re.ASCII):
        raise ValueError("expected a name or an IPv4 address of this machine.")
    return text


def _spark_memory(text: str) -> str:
    size = re.fullmatch(r"([1-9][0-9]{0,5})([mg])", text)
    if not size or int(size[1]) * (1024 if size[2] == "g" else 1) < LEAST_SPARK_MEMORY_MB:
        raise ValueError(f"expected a size such as 1g or 1536m, {LEAST_SPARK_MEMORY_MB}m at least.")
    return text


def _disk_size(text: str) -> int:
    size = re.fullmatch(r"([1-9][0-9]{0,5})([mgt])", text)
    if not size:
        raise ValueError("expected a size such as 10g or 512m.")
    return int(size[1]) * {"m": 2**20, "g": 2**30, "t": 2**40}[size[2]]
