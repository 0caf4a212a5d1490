"""Filters of messages by body and header: what a person writes, read, and told of a message whether it passes."""
