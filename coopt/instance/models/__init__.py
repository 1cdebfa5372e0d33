"""Models read from the files of other tools."""
