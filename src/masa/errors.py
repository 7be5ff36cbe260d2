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


class ConfigError(MasaError):
    """A setting, in masa.toml or of a client, that cannot be."""

    kind = "config"


class StoreError(MasaError):
    """A store that cannot be opened or written."""

    kind = "store"


class BusyError(MasaError):
    """A run that another process is working on."""

    kind = "busy"


class ApiError(MasaError):
    """An API that refuses every call: a wrong key, no credit, a wrong address."""

    kind = "api"


class CallError(Exception):
    """One call that gave no answer; what a client raises.

    The message goes into the store and must hold no text of the user's; what was `said` about it is only shown.
    """

    said = ""


class Refused(CallError):
    """The API said "not now" and did no work: not billed, asked again after a while."""

    def __init__(
        self, message: str = "too many requests", *, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Failed(CallError):
    """The call failed on its way: it may have been billed unless it never left, and is tried again a few times."""

    def __init__(
        self,
        message: str,
        *,
        billed: bool = True,
        overloaded: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.billed = billed
        self.overloaded = overloaded
        self.retry_after = retry_after


class Rejected(CallError):
    """The API will never answer about this item: it is too long, say. Not tried again."""

    def __init__(self, message: str, *, said: str = "") -> None:
        super().__init__(message)
        self.said = said


class Fatal(CallError):
    """The API will not answer about any item, or, `unless_answered`, it may be about this one alone if it answers about others.

    The hint is for the user's eyes and is not stored.
    """

    def __init__(self, message: str, *, hint: str = "", unless_answered: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.unless_answered = unless_answered
