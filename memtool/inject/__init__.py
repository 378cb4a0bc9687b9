"""What an agent sees: budget, tiers, the block and its formats."""
