"""Where memories live: git, snapshots of trees, atomic writes, settings."""
