"""Upkeep: maintenance as one commit, digests, purging and history without a secret."""
