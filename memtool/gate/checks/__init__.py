"""The checks of the gate, one concept a module."""
