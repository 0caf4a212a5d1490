"""The data plane: messages over HTTP, in raw ASGI. No ORM, no DRF: what it must know was published to the log."""
