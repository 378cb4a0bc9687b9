"""Memories from other homes: decision records, agent files, JSON lines."""
