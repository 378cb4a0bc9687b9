"""What sessions teach: statements of people, and failures with their fixes, by rules or a model."""
