"""The command line: a thin interface that reads the verbs' signatures."""
