"""Writing memories: from arguments to a validated file, committed if asked."""
