"""The analytics process: the only one that starts Spark. Runs, queries, replays, and what writes the history."""
