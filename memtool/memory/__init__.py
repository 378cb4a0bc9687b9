"""What a memory is: pure values and rules. Nothing here reads a disk, a clock or git."""
