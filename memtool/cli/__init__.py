"""The command line: a thin surface that reads the verbs' signatures."""
