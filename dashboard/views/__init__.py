"""Pages: a request in, one selector or service, a template out."""
