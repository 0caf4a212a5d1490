"""History: the data source ``okmq`` for any PySpark session, and the jobs that keep and count what was published.

Nothing here imports Django or the rest of the product but ``streams.log``.
"""
