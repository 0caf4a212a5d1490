"""What every request of a web process passes beside its answer: identity, bounds, the access log, metrics."""
