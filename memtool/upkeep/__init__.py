"""Import and export: knowledge that was written elsewhere, and the way out."""
