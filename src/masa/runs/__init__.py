"""Runs against an API: from a configuration to a result in the store.

`task` reads the data and makes the client, `engine` keeps calls under way within `budget` and
`pace`, `session` drives one run and writes everything to the journal before it is used, `conclude`
folds the journal into a result. `assess`, `baseline`, `compare` and `plan` are the commands of the
same names. What answers mean is computed in `inference`; nothing here parses options or prints.
"""
