"""Storage of memories: git, snapshots of trees, atomic writes, settings."""
