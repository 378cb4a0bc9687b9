"""Upkeep: maintenance as one commit, digests, purging, migration and rewriting history."""
