"""What happened: the private sessions of this clone, from transcripts to findings."""
