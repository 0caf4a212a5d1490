"""Configuration as a file: streams, groups, policies and alert rules of a workspace, written out, compared, made so."""
