"""`python -m memtool`."""

from memtool.cli.main import command

if __name__ == "__main__":
    command()
