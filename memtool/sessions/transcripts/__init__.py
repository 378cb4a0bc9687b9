"""Transcripts: what agent hosts write down, read as messages."""
