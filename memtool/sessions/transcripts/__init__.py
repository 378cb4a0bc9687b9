"""Transcripts: the files that agent hosts write, read as messages."""
