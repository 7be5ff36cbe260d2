"""One HTTP call: the answer, or an error that says whether it was billed and may be tried again."""

import asyncio
import errno
import io
import json
import ssl
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from masa.clients.connections import Connector
from masa.clients.deadline import deadline
from masa.clients.secrets import Secrets
from masa.errors import CallError, Failed, Fatal, Refused, Rejected

MOST = 4 << 20
"""The most bytes of an answer; what is larger is not an answer."""

LARGE = 1 << 20
"""From so many bytes on a body is sent in parts, so that other calls go on meanwhile."""

HOPELESS = {
    401: "does the key work?",
    402: "is there credit left?",
    403: "may the key do this?",
    404: "is the URL right?",
    405: "is the method right?",
}
"""Hints for the statuses that every call would get."""


@dataclass(frozen=True, slots=True)
class Response:
    """A JSON answer and its headers."""

    content: Any
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer whose status says that there is none."""

    status: int
    content: Any
    """the JSON in it, or None"""
    text: str
    """its beginning, without secrets, in one line"""
    retry_after: float | None


class Web:
    """Send requests, and translate every failure into one of masa's errors."""

    def __init__(
        self,
        *,
        timeout: float,
        secrets: Secrets,
        meaning: Callable[[Refusal], CallError | None] = lambda _: None,
    ) -> None:
        """Ask `meaning` first what a status means, where a service has codes of its own."""
        self._timeout = timeout
        self._secrets = secrets
        self._meaning = meaning
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[str, str | None] = {}

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: Any = None,
        data: "bytes | aiohttp.FormData | None" = None,
    ) -> Response:
        """Send JSON, or data as it is, and read the answer; raise a CallError where there is none.

        What kind of data it is must be said in the headers.
        """
        if body is not None:
            data = json.dumps(body, ensure_ascii=False).encode()
            headers = {"Content-Type": "application/json", **headers}
        content, received = await self._exchange(method, url, headers, data, MOST)
        try:
            # Not every "NaN" is meant: some servers write it where they have no number.
            return Response(json.loads(content, parse_constant=lambda _: None), received)
        except (ValueError, RecursionError) as exc:
            raise Failed("an answer that is not JSON") from exc

    async def fetch(self, url: str, *, most: int) -> bytes:
        """Fetch a file from its URL; nothing is billed if it cannot be had."""
        try:
            content, _ = await self._exchange("GET", url, {"Accept": "*/*"}, None, most)
        except Failed as exc:
            raise Failed(f"its URL: {exc}", billed=False) from exc
        except Refused:
            raise
        except CallError as exc:
            raise Rejected(f"its URL: {exc}", billed=False) from exc
        return content

    async def _exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        data: "bytes | aiohttp.FormData | None",
        most: int,
    ) -> tuple[bytes, Mapping[str, str]]:
        """Send a request; give the content and the headers of a good answer."""
        session = self._open()
        # A few bytes compressed can be gigabytes; answers are small without it.
        sent = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        if data is None:
            sent.pop("Content-Type", None)
        if isinstance(data, bytes) and len(data) >= LARGE:
            data = io.BytesIO(data)  # type: ignore[assignment]
        try:
            async with (
                deadline(self._timeout),
                session.request(
                    method,
                    url,
                    data=data,
                    headers=sent,
                    allow_redirects=False,
                    proxy=self._proxy(url),
                ) as response,
            ):
                content = await _read(response, most)
                status, received = response.status, response.headers
        except TimeoutError as exc:
            raise Failed(f"no answer in {self._timeout:g} s") from exc
        except aiohttp.InvalidURL as exc:
            raise Fatal("the URL cannot be used", hint="write it as https://host/path") from exc
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLError) as exc:
            raise Fatal(
                "the server's certificate is not trusted",
                hint="set SSL_CERT_FILE to the certificate of your own authority",
            ) from exc
        except aiohttp.ClientConnectorError as exc:
            if exc.errno in (errno.EMFILE, errno.ENFILE):
                raise Refused("too many connections for this machine") from exc
            raise Failed("no connection", billed=False) from exc
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError, ValueError) as exc:
            raise Failed(f"connection lost ({type(exc).__name__})") from exc
        if not 200 <= status < 300:
            self._raise_for_status(status, received, content)
        return content, received

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            # The engine limits how many calls are under way; a second limit here would only hide
            # calls from its clock.
            self._session = aiohttp.ClientSession(
                connector=Connector(limit=0, ttl_dns_cache=60),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
            # aiohttp would send GET and PUT a second time when a connection is lost, and the
            # budget would not know.
            self._session._retry_connection = False
        return self._session

    def _proxy(self, url: str) -> str | None:
        """Return the proxy that the usual environment variables name for a URL.

        aiohttp would look them up again, in a thread, for every call.
        """
        address = urlsplit(url)
        host = address.hostname or ""
        if host not in self._proxies:
            proxy = None
            if not proxy_bypass(host):
                named = getproxies()
                proxy = named.get(address.scheme) or named.get("all")
            if proxy and urlsplit(proxy).scheme not in ("http", "https", ""):
                raise Fatal(
                    f"the proxy speaks {urlsplit(proxy).scheme}, which masa does not",
                    hint="name an HTTP proxy in HTTPS_PROXY, or this host in NO_PROXY",
                )
            self._proxies[host] = proxy
        return self._proxies[host]

    def _raise_for_status(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Raise the error that a status means."""
        after = retry_after(headers)
        said = content[:2000].decode(errors="replace")
        shown = " ".join(self._secrets.hide(said).split())[:200]
        own = self._meaning(Refusal(status, _json_or_none(content), shown, after))
        if own is not None:
            raise own
        if status == 429:
            if "insufficient_quota" in said or "credit_balance" in said:
                raise Fatal(
                    "HTTP 429, no credit left",
                    hint="top up the account",
                )
            raise Refused("HTTP 429", retry_after=after)
        if status in (503, 529):
            raise Failed(f"HTTP {status}", overloaded=True, retry_after=after)
        if status >= 500 or status in (408, 409, 425):
            raise Failed(f"HTTP {status}", retry_after=after)
        if status in HOPELESS or 300 <= status < 400:
            hint = HOPELESS.get(status) or self._target(headers.get("Location", ""))
            if shown:
                hint += f" The server said: {shown}"
            # A key that does not work for one item hardly works for another.
            others = 1 if status in (401, 402) else 4
            raise Fatal(f"HTTP {status}", hint=hint, unless_answered=True, others=others)
        raise Rejected(f"HTTP {status}", said=shown)

    def _target(self, location: str) -> str:
        """Say where a server redirects to, without what may be a secret in another spelling."""
        try:
            target = urlsplit(location)
            host = target.netloc.rpartition("@")[2]
        except ValueError:
            return "it redirects to what is no address"
        scheme = f"{target.scheme}://" if target.scheme and host else ""
        where = self._secrets.hide(f"{scheme}{host}{unquote(target.path)}")
        return f"it redirects to {' '.join(where.split())[:200] or 'nowhere'}"


def redirected() -> Fatal:
    """Say that an address leads to another one, to which no key or input is sent."""
    return Fatal(
        "the address redirects to another one",
        hint="write the other address in [api], if it is the right one",
        unless_answered=True,
        billed=False,
    )


def _json_or_none(content: bytes) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(content)
    return None


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Read an answer up to a limit, without waiting for the rest of a larger one."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most:
            raise Failed(_too_large(most))
        parts.append(part)
    return _unpacked(b"".join(parts), response.headers.get("Content-Encoding", "identity"), most)


def _too_large(most: int) -> str:
    return f"an answer of more than {most >> 20} MB"


def _unpacked(content: bytes, encoding: str, most: int = MOST) -> bytes:
    """Decompress what a server compressed without being asked to, up to the same limit.

    >>> import gzip
    >>> _unpacked(gzip.compress(b"{}"), "gzip")
    b'{}'
    """
    if encoding.lower() in ("identity", ""):
        return content
    if encoding.lower() not in ("gzip", "x-gzip", "deflate"):
        raise Failed("an answer that is compressed in an unknown way")
    for kind in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):  # with a header, or without one
        with suppress(zlib.error):
            unpacked = zlib.decompressobj(kind).decompress(content, most + 1)
            if len(unpacked) > most:
                raise Failed(_too_large(most))
            return unpacked
    raise Failed("an answer that cannot be decompressed")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, if it does.

    >>> retry_after({"Retry-After": "2"}), retry_after({"retry-after-ms": "1500"})
    (2.0, 1.5)
    >>> retry_after({"Retry-After": "soon"}) is None
    True
    """
    given = {name.lower(): value for name, value in headers.items()}
    with suppress(ValueError):
        if "retry-after-ms" in given:
            return max(0.0, float(given["retry-after-ms"]) / 1000)
    seconds_or_date = given.get("retry-after", "")
    with suppress(ValueError):
        return max(0.0, float(seconds_or_date))
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(seconds_or_date).timestamp() - time.time())
    return None
