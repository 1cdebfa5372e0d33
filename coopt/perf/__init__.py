"""The analytical model: seconds and bytes of one iteration. Knows nothing of prices."""
