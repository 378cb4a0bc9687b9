"""Secrets and personal data: texts in, detections out, and marks in their place."""

VERSION = "b3b2f68d"
"""Names the detectors: what was searched with others is searched again. A test says what it is."""
