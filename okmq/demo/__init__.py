"""Real flights and steady traffic for a first look: ``python -m okmq.demo``, and the demo of the console."""
