"""`python -m memtool`."""

from memtool.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
