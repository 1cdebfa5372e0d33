"""Plan a cluster that spreads over several sites."""
