"""Commands: one file each, no logic. Each imports what it needs when it is called."""
