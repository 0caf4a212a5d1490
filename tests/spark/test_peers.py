"""Who else on the machine connects to Spark gets nothing of it: any user may connect to a port on loopback."""

import re
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark import session as spark_session

pytestmark = pytest.mark.spark

RPC_REQUEST, RPC_FAILURE = 3, 5
OPEN_BLOCKS = 0
LENGTH = struct.Struct(">q")


def listening(spark: SparkSession) -> list[int]:
    """Where Spark takes connections of its own kind: for blocks, and for calls."""
    context: Any = spark.sparkContext._jsc
    blocks = re.search(r"127\.0\.0\.1:(\d+)", context.sc().getExecutorMemoryStatus().toString())
    calls = spark.sparkContext.getConf().get("spark.driver.port")
    assert blocks is not None
    assert calls is not None
    return [int(blocks[1]), int(calls)]


def answer_to_a_stranger(port: int, *, block: str) -> bytes:
    """What somebody without a secret is told who asks for a block, in Spark's own protocol."""
    asked = bytes([OPEN_BLOCKS]) + text("app") + text("other") + struct.pack(">i", 1) + text(block)
    frame = struct.pack(">bqi", RPC_REQUEST, 1, len(asked)) + asked
    with socket.create_connection(("127.0.0.1", port), 10) as peer, peer.makefile("rb") as answers:
        peer.settimeout(60)
        peer.sendall(LENGTH.pack(LENGTH.size + len(frame)) + frame)
        (length,) = LENGTH.unpack(answers.read(LENGTH.size))
        return answers.read(length - LENGTH.size)


def text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def test_without_the_secret_nothing_is_answered(spark: SparkSession) -> None:
    held = spark.sparkContext.parallelize(["what a query read"], 1).cache()
    assert held.count() == 1
    for port in listening(spark):
        answer = answer_to_a_stranger(port, block=f"rdd_{held.id()}_0")
        assert answer[0] == RPC_FAILURE
        assert b"Expected SaslMessage" in answer


def test_the_secret_stands_nowhere_outside_of_java(spark: SparkSession) -> None:
    java = spark_session.process()
    assert java is not None
    told = "".join(Path(f"/proc/{java.pid}/{of}").read_text() for of in ("cmdline", "environ"))
    assert "spark.authenticate=true" in told
    assert not re.search(r"authenticate\.secret|SPARK_AUTH_SECRET", told)
    assert spark.sparkContext.getConf().get("spark.authenticate.secret") is None
