"""Validation: one table of checks over one content, from any source."""
