"""The command line: parse, one call, print.

`main` is the entry: it runs a command and turns what goes wrong into an exit code. `options`
derives the options of every command from the settings. Each file in `commands` holds a group of
commands, `output` prints, `draft` writes masa.toml for `masa init`, `demo` is the example that
needs nothing. Nothing here computes a result.
"""
