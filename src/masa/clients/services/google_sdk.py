"""Google's packages: clients that ask once, and what Google's errors mean.

Also for Google's language models, whose errors have the same form.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from masa.clients import Context
from masa.clients.options import OptionsModel
from masa.clients.secrets import Secrets, refuse_bad_address, refuse_literal_secrets
from masa.clients.threads import in_a_thread
from masa.clients.web import redirected
from masa.errors import (
    CallError,
    ConfigError,
    Failed,
    Fatal,
    MissingPackageError,
    Refused,
    Rejected,
)

EXTRA = "pip install 'masa-shift[google]'"

NO_ENTRY = {
    "API_KEY_INVALID": "does the key work?",
    "API_KEY_SERVICE_BLOCKED": "may the key call this service?",
    "API_KEY_HTTP_REFERRER_BLOCKED": "may the key be used from here?",
    "API_KEY_IP_ADDRESS_BLOCKED": "may the key be used from here?",
    "ACCESS_TOKEN_EXPIRED": "log in again",
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": "does the account have the scope cloud-platform?",
    "SERVICE_DISABLED": "switch the API on in the project",
    "BILLING_DISABLED": "switch billing on in the project",
    "CONSUMER_INVALID": "does the project exist?",
    "CONSUMER_SUSPENDED": "the project is suspended",
    "USER_PROJECT_DENIED": "may the account use the project?",
}
"""Reasons for which every call is refused, and what may help."""


class GoogleOptions(OptionsModel):
    """The keys of `[api]` that reach one of Google's services."""

    key: str | None = None
    """an API key as ${NAME}; without it the credentials that Google's package finds"""
    endpoint: str | None = None
    """another address, such as https://eu-language.googleapis.com; it then needs a key"""


class Sdk:
    """A client of one of Google's packages, which asks once and at one address."""

    def __init__(
        self,
        client: Callable[..., Any],
        options: GoogleOptions,
        context: Context,
        *,
        host: str,
        timeout: float,
    ) -> None:
        address = options.endpoint or f"https://{host}"
        refuse_bad_address(address, where="[api] endpoint")
        self._secrets = Secrets(context, address)
        key = None
        if options.key is not None:
            refuse_literal_secrets({"key": options.key}, where="[api]")
            key = self._secrets.fill(options.key)
        self._client = _client(client, address, key)
        self._timeout = timeout

    async def ask(self, operation: str, **given: Any) -> Any:
        """Call an operation once; raise a CallError where there is no answer."""

        def call() -> Any:
            method = getattr(self._client, operation)
            return method(**given, retry=None, timeout=self._timeout)

        try:
            return await in_a_thread(call, timeout=self._timeout)
        except CallError:
            raise
        except Exception as exc:
            raise meaning(exc, self._secrets.hide) from exc

    def refused(self, status: int, message: str) -> CallError:
        """Translate an error about one of several inputs."""
        return of_status(status, "", {}, self._secrets.hide(message))

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._client.transport.close()


def _client(client: Callable[..., Any], address: str, key: str | None) -> Any:
    """Make a client. Google's own credentials go to Google's own hosts alone."""
    from google.api_core.client_options import ClientOptions
    from google.auth.credentials import AnonymousCredentials
    from google.auth.exceptions import GoogleAuthError

    parts = urlsplit(address)
    own = parts.scheme == "https" and (parts.hostname or "").endswith(".googleapis.com")
    given: dict[str, Any] = {"api_endpoint": address}
    credentials = None
    if key is not None:
        given["api_key"] = key
    elif not own:
        # Whoever has the other address must not be sent the credentials of this machine.
        credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]
    try:
        made = client(
            transport="rest", credentials=credentials, client_options=ClientOptions(**given)
        )
    except GoogleAuthError as exc:
        raise ConfigError(
            "there are no Google credentials",
            hint="gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS, "
            'or an API key: key = "${GOOGLE_API_KEY}"',
        ) from exc
    except Exception as exc:
        raise ConfigError(
            f"Google's package refuses these options: {type(exc).__name__}",
            hint="check endpoint and key in [api]",
        ) from exc
    _ask_once(made.transport._session)
    return made


def missing(exc: ImportError, what: str) -> MissingPackageError:
    """Say which package is needed."""
    error = MissingPackageError(f"{what} needs a package of Google's", hint=EXTRA)
    error.__cause__ = exc
    return error


def _ask_once(session: Any) -> None:
    """Keep a session from sending a call again with new credentials, which would not be counted."""
    from requests.adapters import HTTPAdapter

    session._max_refresh_attempts = 0
    session.max_redirects = 0
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=64, max_retries=0))


def meaning(exc: Exception, hide: Callable[[str], str]) -> CallError:
    """Translate an error of Google's packages; `hide` takes secrets out of what is shown."""
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError, TransportError
    from requests import exceptions as http

    if isinstance(exc, GoogleAPICallError):
        metadata = {**(getattr(exc, "metadata", None) or {})}
        reason, said = hide(str(exc.reason or "")), hide(str(exc.message))
        return of_status(int(exc.code or 0), reason, metadata, said)
    if isinstance(exc, http.TooManyRedirects):
        return redirected()
    if isinstance(exc, TransportError | http.ConnectTimeout):
        return Failed("no connection", billed=False)
    if isinstance(exc, GoogleAuthError):
        return Fatal("Google's credentials do not work", hint="log in again", billed=False)
    if isinstance(exc, http.ConnectionError):
        # Refused before anything was sent, or lost afterwards: the text alone tells.
        unsent = "NewConnectionError" in str(exc) or "NameResolutionError" in str(exc)
        return Failed("no connection" if unsent else "connection lost", billed=not unsent)
    if isinstance(exc, http.Timeout):
        return Failed("no answer in time")
    return Failed(f"an answer that cannot be read ({type(exc).__name__})")


def of_status(
    status: int, reason: str, metadata: Mapping[str, str], message: str, after: float | None = None
) -> CallError:
    """Translate a status and a reason of Google's.

    >>> of_status(429, "RATE_LIMIT_EXCEEDED", {}, "")
    Refused('HTTP 429 RATE_LIMIT_EXCEEDED')
    """
    named = " ".join(filter(None, (f"HTTP {status}", reason)))
    if reason in NO_ENTRY:
        return Fatal(named, hint=NO_ENTRY[reason], billed=False)
    if status == 429:
        if "PerDay" in metadata.get("quota_limit", "") or "PerDay" in metadata.get("quota_id", ""):
            return Fatal(
                "the quota of a day is used up", hint="run it again tomorrow", billed=False
            )
        return Refused(named, retry_after=after)
    if status == 401:
        return Fatal(named, hint="do the credentials work?", billed=False)
    if status in (403, 404):
        hint = "may the account do this? docs/services names the roles"
        return Fatal(named, hint=hint, unless_answered=True, billed=False)
    if status in (503, 504, 408) or status >= 500 or status == 0:
        # Server errors are not billed by these services.
        return Failed(named, billed=status == 504, overloaded=status == 503, retry_after=after)
    return Rejected(named, said=" ".join(message.split())[:200])
