"""The errors that masa raises: for users (MasaError), and for single calls (CallError)."""

LONGEST_MESSAGE = 300
"""The most characters of what is said about a call that gave no answer."""


class MasaError(Exception):
    """Something that the user can fix.

    The message says what is wrong and where, the hint how to fix it.
    """

    kind = "error"
    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(MasaError):
    """An option or argument has an impossible value."""

    kind = "usage"


class DataError(MasaError):
    """A file, column or row cannot be used."""

    kind = "data"


class MissingPackageError(MasaError):
    """An optional package is needed and not installed."""

    kind = "missing-package"


class ConfigError(MasaError):
    """A setting in masa.toml or of a client is wrong."""

    kind = "config"


class StoreError(MasaError):
    """A store cannot be opened or written."""

    kind = "store"


class BusyError(MasaError):
    """Another process is working on the run."""

    kind = "busy"


class ApiError(MasaError):
    """The API refuses every call: a wrong key, no credit, a wrong address."""

    kind = "api"


class CallError(Exception):
    r"""One call gave no answer. Clients raise one of its subclasses.

    The message is stored, so it must not contain any text of the user's. What is in `said` is
    only shown.

    >>> str(CallError("HTTP 400 " + chr(0xD800)))
    'HTTP 400 \\ud800'
    """

    said = ""

    def __str__(self) -> str:
        """Give the message as it can be stored and shown: part of it may be the API's own words."""
        message = super().__str__()[:LONGEST_MESSAGE]
        return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in message)


class Refused(CallError):
    """The API said "not now" and did no work: not billed, tried again later."""

    def __init__(
        self, message: str = "too many requests", *, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Failed(CallError):
    """The call failed on its way: tried again a few times.

    It may have been billed, unless it never left this machine.
    """

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
    """The API will never answer about this item, for example because it is too long.

    It is not tried again. It counts as billed unless it is known not to be.
    """

    def __init__(self, message: str, *, said: str = "", billed: bool = True) -> None:
        super().__init__(message)
        self.said = said
        self.billed = billed


class Fatal(CallError):
    """The API will not answer about any item.

    With `unless_answered` it may be about this item alone, if the API answers about others;
    `others` is how many other items are asked to find out, while nothing was answered. The hint is
    shown to the user and not stored.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        unless_answered: bool = False,
        others: int = 4,
        billed: bool = True,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.billed = billed
        self.unless_answered = unless_answered
        self.others = others
