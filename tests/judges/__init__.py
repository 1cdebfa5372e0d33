"""Real programs that read what coopt writes: `make judges` (docs/judges.md)."""
