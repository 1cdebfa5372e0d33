"""Check lower bounds by going through everything that could cost less."""
