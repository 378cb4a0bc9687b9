"""The derived index: terms, postings, stored fields, and the stamps of their files."""
