"""Rules that the tables of an instance must satisfy together."""
