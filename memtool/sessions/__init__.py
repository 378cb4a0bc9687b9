"""The private sessions of this clone, from transcripts to findings."""
