"""Publishing by hand: one message, or many."""
