"""Writing memories: from arguments to a checked file, committed if asked."""
