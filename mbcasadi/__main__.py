"""`python -m mbcasadi`: the command line."""

from mbcasadi.cli import main

if __name__ == "__main__":
    main()
