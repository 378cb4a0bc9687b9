"""Search: query language, retrieval, ranking, comparison, drift."""
