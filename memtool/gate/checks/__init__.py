"""The checks of the gate, one module each; `gate.gate` holds their table."""
