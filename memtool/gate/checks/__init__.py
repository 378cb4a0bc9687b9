"""The checks of the gate, one module each; `gate.gate` has their table."""
