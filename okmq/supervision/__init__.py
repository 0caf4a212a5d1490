"""What keeps the processes alive, whatever they are: their start, logs, deaths and folders, and the private servers."""
