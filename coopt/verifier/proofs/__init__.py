"""Check proofs of bounds of coupled parts, in whole numbers."""
