"""The version of memtool, and its only home: a build reads it here."""

__version__ = "0.1.0"
