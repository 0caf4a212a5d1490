"""What may be said to the private servers: by the product no more than it says, by their keeper everything.

The product's processes are the user ``default``, who needs no password on a socket that only their owner can open. What
a server function calls is asked of its caller's rights, so this is what the whole product needs, and nothing else can
come of a fault in it: no configuration, no EVAL, no flush, no shutdown, no copy to another server. Functions of
somebody's own can be loaded, as the product's come that way, and can say no more than whoever calls them.
The keeper's password is in a file beside the server's own; backups and whoever looks after a server use it.
"""

import hashlib
import secrets
from pathlib import Path
from urllib.parse import quote

KEEPER = "keeper"

KEYS, CHANNELS = "okmq:*", "okmq*"

COMMANDS = frozenset(
    {
        *("del", "exists", "get", "scan", "set", "unlink"),
        *("hdel", "hexists", "hget", "hgetall", "hincrby", "hkeys", "hlen", "hmget"),
        *("hrandfield", "hscan", "hset", "hsetnx"),
        *("sadd", "scard", "sismember", "smembers", "spop", "srem"),
        *("xadd", "xdel", "xinfo", "xlen", "xrange", "xrevrange", "xtrim"),
        *("zadd", "zcard", "zcount", "zlexcount", "zmscore", "zrange", "zrangebylex", "zrangebyscore"),
        *("zrangestore", "zrank", "zrem", "zremrangebyrank", "zremrangebyscore", "zrevrange"),
        *("zrevrangebyscore", "zscore", "zunionstore"),
        *("expire", "lrange", "ltrim", "pttl", "rpush"),
        *("publish", "pubsub|numsub", "subscribe", "unsubscribe"),
        *("fcall", "function|delete", "function|list", "function|load"),
        *("config|get", "info", "ping", "select", "time"),
        "cluster|slots",  # of a cluster of one's own; a single server has none to tell
    }
)
"""As access lists write them: in small letters, a part of a command behind a bar."""


def access_list(password: str) -> str:
    """The lines of a server's configuration."""
    allowed = " ".join(f"+{each}" for each in sorted(COMMANDS))
    digest = hashlib.sha256(password.encode()).hexdigest()
    return (
        f"user default on nopass ~{KEYS} resetchannels &{CHANNELS} -@all {allowed}\n"
        f"user {KEEPER} on #{digest} ~* &* +@all\n"
    )


def password_make(folder: Path) -> str:
    """The keeper's password of the server that keeps its things in a folder; made when there is none."""
    path = folder / KEEPER
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_hex(32))
    return path.read_text()


def keeper_url(url: str, folder: Path) -> str:
    """The address of a private server for its keeper; of one that an earlier version started, the usual one."""
    path = folder / KEEPER
    if not path.exists():
        return url
    return url.replace("unix://", f"unix://{KEEPER}:{quote(path.read_text())}@", 1)
