"""Calls: what a verb takes, how values become its arguments, and how it runs for programs."""
