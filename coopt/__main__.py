"""`python -m coopt` does what `coopt` does."""

from coopt.cli.entry import run

if __name__ == "__main__":
    run()
