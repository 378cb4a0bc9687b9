"""Remote procedure calls: the verbs with JSON arguments, for the surfaces of programs."""
