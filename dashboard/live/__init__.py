"""What moves while a page is open: rates, charts of the last hours, and the one socket."""
