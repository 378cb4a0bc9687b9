"""Finding: terms, the index, the query language, ranking, aliases."""
