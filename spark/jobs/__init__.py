"""The jobs: each reads, transforms, writes, and runs alone with ``python -m spark.jobs.<name>``."""
