"""Everything masa says no with."""


class MasaError(Exception):
    """Something the user can mend: what is wrong and where, with a hint that says how to mend it."""

    kind = "error"
    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(MasaError):
    """An option or argument that cannot be."""

    kind = "usage"


class DataError(MasaError):
    """A file, column or row that cannot be used."""

    kind = "data"


class MissingPackageError(MasaError):
    """An optional package that the asked-for feature needs."""

    kind = "missing-package"
