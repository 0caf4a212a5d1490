"""Lists of streams, groups and events: what is asked of them, in which order, and a page of them."""
