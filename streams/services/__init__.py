"""Everything that changes something: check, change, publish to the log on commit, record the event."""
