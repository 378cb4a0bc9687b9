"""Extraction: what sessions give reason to keep, by rules or by a model of the user's choice."""
