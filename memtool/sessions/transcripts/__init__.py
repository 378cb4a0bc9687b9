"""Transcripts: what agent hosts write down, one module per format."""
