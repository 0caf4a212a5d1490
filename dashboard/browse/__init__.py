"""Looking into a stream: which messages, what lies in them, and what a search for them costs."""
