"""Calls: what a verb takes, how it is bound and run, how it fails, and what is printed."""
