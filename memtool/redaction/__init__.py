"""Secrets and personal data: texts in, detections out, and marks in their place."""
