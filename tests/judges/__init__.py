"""Real programs that read what coopt writes: `make judges` (README.md)."""
