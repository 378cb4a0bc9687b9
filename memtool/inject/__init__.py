"""The text for agents: budget, tiers, the block and its formats."""
