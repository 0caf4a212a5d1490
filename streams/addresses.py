"""Addresses of stores: of one server, or of a cluster by some of its nodes.

A cluster's is ``redis+cluster://user:password@host:port,host:port?…`` (``rediss+cluster://`` with TLS): user, password
and options are those of every node, and any nodes of it may be named; the others are found through these.
"""

import re
from urllib.parse import urlsplit

CLUSTERS = ("redis+cluster://", "rediss+cluster://")


def is_cluster(url: str) -> bool:
    """Whether an address is that of a cluster."""
    return url.startswith(CLUSTERS)


def nodes(url: str) -> list[str]:
    """The address of each node that a cluster's address names; of one server, its own alone."""
    if not is_cluster(url):
        return [url]
    scheme, login, hosts, options = _parts(url)
    return [f"{scheme}://{login}{host}{options}" for host in hosts.split(",") if host]


def node(url: str, host: str, port: int) -> str:
    """The address of another node of a cluster, as one node names it."""
    scheme, login, _, options = _parts(url)
    return f"{scheme}://{login}{f'[{host}]' if ':' in host else host}:{port}{options}"


def of_url(text: str) -> str:
    """The text where host and port of it can be read.

    Raises:
        ValueError: they cannot, with what was expected. What stands there may be a password: it is not told.
    """
    try:
        _ = urlsplit(text).port
    except ValueError:
        raise ValueError(
            "expected host:port behind user:password@; encode / ? # and @ in a password (%2F %3F %23 %40)."
        ) from None
    return text


def of_server(text: str) -> str:
    """The text where it is the address of one server.

    Raises:
        ValueError: it is none, with what was expected.
    """
    if not text.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("expected a URL that starts with redis://, rediss:// or unix://.")
    return of_url(text)


def of_store(text: str) -> str:
    """The text where it is the address of one server or of a cluster.

    Raises:
        ValueError: it is none, with what was expected.
    """
    if not is_cluster(text):
        return of_server(text)
    if not re.fullmatch(r"[^:/,]+:[0-9]{1,5}(,[^:/,]+:[0-9]{1,5})*", _parts(text)[2]):
        raise ValueError(
            "expected redis+cluster://host:port,host:port with one or more nodes of the cluster."
        )
    for each in nodes(text):
        of_url(each)
    return text


def _parts(url: str) -> tuple[str, str, str, str]:
    """Scheme of a node, ``user:password@``, hosts with ports, and what follows them."""
    scheme, _, rest = url.partition("://")
    hosts = rest.partition("?")[0].partition("/")[0]
    login, at, named = hosts.rpartition("@")
    return scheme.removesuffix("+cluster"), login + at, named, rest[len(hosts) :]
