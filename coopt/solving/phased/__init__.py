"""Plan a cluster that grows in phases."""
