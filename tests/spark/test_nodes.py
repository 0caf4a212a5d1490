"""What a task of Spark does, on a cluster of stores: streams of all nodes are read as one table."""

from contextlib import closing
from pathlib import Path
from typing import cast

import pyarrow as pa

from spark import schemas
from spark.source import OkmqDataSource
from streams.log import config, keys
from streams.log.client import Log
from tests.clusters import cluster
from tests.streams.log.conftest import DEFAULTS
from tests.streams.log.messages import fill

MANY = 24


def test_streams_of_all_nodes_are_read(tmp_path: Path) -> None:
    with cluster(tmp_path) as nodes, closing(Log(nodes.url)) as log:
        streams = [
            config.Registered(
                stream_id=keys.stream_id(), name=f"s-{at}", workspace="default", workspace_id=1, archive=True
            )
            for at in range(MANY)
        ]
        log.run(config.streams_publish([(each, DEFAULTS) for each in streams]))
        for at, stream in enumerate(streams):
            fill(log, stream.stream_id, at + 1)
        assert {nodes.node_of(each.stream_id).port for each in streams} == {each.port for each in nodes.nodes}
        reader = OkmqDataSource({"url": nodes.url, "stream": "s-*"}).reader(schemas.MESSAGES)
        found: dict[str, int] = {}
        for part in reader.partitions():
            for batch in reader.read(part):
                for name in cast(pa.RecordBatch, batch).column("stream").to_pylist():
                    found[name] = found.get(name, 0) + 1
    assert found == {f"s-{at}": at + 1 for at in range(MANY)}
