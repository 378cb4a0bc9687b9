"""The rules of extraction, one kind of evidence each: pure functions from a scene to claims."""
