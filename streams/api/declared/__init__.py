"""Configuration as a file: streams, groups and policies of a workspace, written out, compared, made so."""
