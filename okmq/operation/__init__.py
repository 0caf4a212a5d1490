"""What an operator asks of an installation: what is wrong with it, a copy of it, its configuration as a file."""
