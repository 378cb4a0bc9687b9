"""Secrets and personal data: texts in, detections out, and marks in their place."""

VERSION = "4f85492f"
"""Names the detectors: what was searched with others is searched again. A test says what it is."""
