"""`python -m coopt` does what `coopt` does."""

from coopt.cli.main import main

if __name__ == "__main__":
    main()
