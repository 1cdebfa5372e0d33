"""Checks by name, the ledger they are written into, and what every plan claims of itself."""
