"""Secrets come from the environment and stay out of everything that is shown or stored."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from masa.clients import Context
from masa.clients.templates import PLACE
from masa.errors import ConfigError

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A variable of the environment: ${NAME}."""

SECRET = re.compile(r"auth|key|token|secret|passw|cookie|credential", re.IGNORECASE)
"""The name of a key or header whose value is probably a secret."""


class Secrets:
    """Fill in ${NAME} from the environment, and remove the values from anything that is shown.

    Only variables that the configuration declares are filled in, and each goes to one host.
    """

    def __init__(self, context: Context, url: str) -> None:
        """Fill in what is sent to a URL."""
        self._context = context
        self._host = urlsplit(url).netloc.lower()
        self._used: set[str] = set()

    def also_hide(self, value: str) -> None:
        """Hide another value, such as a token that was fetched."""
        self._used.add(value)

    def fill(self, text: str) -> str:
        """Replace each variable by its value."""
        return VARIABLE.sub(self._value, text)

    def fill_address(self, url: str) -> str:
        """Replace each variable of a URL by its value, percent-encoded."""
        return VARIABLE.sub(lambda match: quote(self._value(match), safe=""), url)

    def hide(self, text: str) -> str:
        """Replace each value that was filled in by ***, also where it is quoted or escaped."""
        # The longest first: one value may be part of another.
        for value in sorted(self._used, key=len, reverse=True):
            for form in {value, *_in_urls(value), *_in_json(value)}:
                text = text.replace(form, "***")
        return text

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        if name not in self._context.environment:
            raise ConfigError(
                f"the environment variable {name} is not declared as a secret of {self._host}",
                hint=f'write secrets = ["{name}"] above the first table of masa.toml '
                f"if {self._host} may have it",
            )
        host = self._context.hosts.setdefault(name, self._host)
        if host != self._host:
            raise ConfigError(
                f"the environment variable {name} would go to {host} and to {self._host}",
                hint="a secret goes to one host; use a variable for each",
            )
        value = self._context.environment[name].strip()
        if not value:
            raise ConfigError(
                f"the environment variable {name} is not set",
                hint=f"export {name}=... before running masa",
            )
        if not value.isprintable():
            raise ConfigError(
                f"the environment variable {name} contains control characters",
                hint="set it to the key alone",
            )
        self._used.add(value)
        return value


def with_own_keys(
    context: Context, url: str, names: Sequence[str], *, hosts: Sequence[str]
) -> Context:
    """Let a provider's own keys go to the provider without a declaration, and nowhere else.

    A host that begins with a dot stands for all names that end with it.
    """
    address = urlsplit(url)
    host = (address.hostname or "").lower()
    theirs = any(host == one or (one.startswith(".") and host.endswith(one)) for one in hosts)
    if address.scheme != "https" or not theirs:
        return context
    keys = {name: os.environ.get(name, "") for name in names if name not in context.environment}
    return replace(context, environment={**context.environment, **keys})


def _in_urls(value: str) -> set[str]:
    """Return a value as it may be written inside a URL."""
    forms = {quote(value), quote_plus(value), quote(value, safe="")}
    small = {re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in forms}
    return forms | small


def _in_json(value: str) -> tuple[str, str]:
    """Return a value as it may be written inside a JSON text."""
    return json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]


def refuse_literal_secrets(content: Any, *, where: str, name: str = "") -> None:
    """Raise if something that looks like a secret is written out, at any depth."""
    if isinstance(content, Mapping):
        for inner, part in content.items():
            refuse_literal_secrets(part, where=where, name=str(inner))
    elif isinstance(content, list):
        for part in content:
            refuse_literal_secrets(part, where=where, name=name)
    elif isinstance(content, str) and content and SECRET.search(name) and not _filled_in(content):
        raise ConfigError(
            f"{where}: {name!r} looks like a secret and is written out",
            hint="put it into an environment variable and write ${NAME} in its place",
        )


def _filled_in(text: str) -> bool:
    """Say whether a text has an environment variable in it, or only places for inputs."""
    return bool(VARIABLE.search(text)) or not PLACE.sub("", text).strip()


def refuse_bad_headers(headers: Mapping[str, str]) -> None:
    """Raise if a header cannot be sent."""
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not value.isprintable():
            raise ConfigError(
                f"[api] headers: {name!r} cannot be sent",
                hint="write the name without spaces and the value in one line",
            )


def refuse_bad_address(url: str, *, where: str) -> None:
    """Raise if a URL is not valid or contains a secret."""
    try:
        address = urlsplit(VARIABLE.sub("x", url))
    except ValueError as exc:
        raise ConfigError(
            f"{where} is not an address: {exc}", hint="write it as https://host/path"
        ) from exc
    if address.scheme not in ("http", "https") or not address.netloc:
        raise ConfigError(f"{where} is not an address", hint="write it as https://host/path")
    if address.username or address.password:
        raise ConfigError(
            f"{where} contains a user or a password",
            hint="send it as a header, from an environment variable",
        )
    written = urlsplit(url)
    if VARIABLE.search(written.netloc) or PLACE.search(written.netloc):
        raise ConfigError(
            f"{where} does not say which host it is",
            hint="write the host out; variables and inputs may stand behind it",
        )
    refuse_literal_secrets(dict(parse_qsl(written.query)), where=where)
