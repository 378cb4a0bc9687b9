"""The derived index: terms, postings, stored fields, and what they were made from."""
