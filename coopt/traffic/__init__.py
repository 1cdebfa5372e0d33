"""Who sends how much to whom in an iteration, and over which part of the network."""
