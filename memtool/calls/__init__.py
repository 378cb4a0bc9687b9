"""Calls: the signature of a verb, binding its arguments, running it, its errors and output."""
