"""Baidu's sentiment_classify. Without charset=UTF-8 it would read and write GBK."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from masa.clients import Context
from masa.clients.options import checked
from masa.clients.secrets import (
    Secrets,
    refuse_bad_address,
    refuse_literal_secrets,
    with_own_keys,
)
from masa.clients.services.service import (
    Names,
    ServiceOptions,
    TextService,
    described,
    text_column,
)
from masa.clients.unreadable import UNREADABLE
from masa.clients.web import Web
from masa.errors import CallError, Failed, Fatal, Refused, Rejected
from masa.records import Item, Reply

BASE_URL = "https://aip.baidubce.com"
KEYS = ("BAIDU_API_KEY", "BAIDU_SECRET_KEY")

MOST_CHARACTERS = 2048

CODES = {0: "negative", 1: "neutral", 2: "positive"}

EARLY = 3600.0
"""Seconds before its end after which a token is not used any more."""

TOKEN_INVALID = (110, 111)
TOO_FAST = (4, 18)
NO_QUOTA = {
    6: "may this application call sentiment_classify?",
    14: "does the key work?",
    17: "the quota of a day is used up: run it again tomorrow",
    19: "the whole quota is used up: buy more",
}
THEIR_FAULT = (1, 2, 13, 15, 16, 282000)
"""Codes in the body: Baidu gives them with status 200 as well."""


class BaiduOptions(ServiceOptions):
    """The keys of `[api]` for `client = "baidu-nlp"`."""

    base_url: str = BASE_URL
    """another address; the keys must then be declared"""
    key: str = f"${{{KEYS[0]}}}"
    """the API key, as ${NAME}"""
    secret: str = f"${{{KEYS[1]}}}"
    """the secret key, as ${NAME}"""
    known_labels_only: bool = False
    """of positive and negative, take the likelier: for data without neutral"""


class BaiduNlp(TextService):
    """A client of sentiment_classify."""

    name = "baidu-nlp"

    def __init__(self, options: BaiduOptions, context: Context) -> None:
        names = Names.build(self.name, options.labels, context.labels)
        super().__init__(options, names)
        self._options = options
        self._labels = context.labels
        context = with_own_keys(context, options.base_url, KEYS, hosts=("aip.baidubce.com",))
        self._secrets = Secrets(context, options.base_url)
        self._base = self._secrets.fill_address(options.base_url).rstrip("/")
        self._asks_for_token = {
            "grant_type": "client_credentials",
            "client_id": self._secrets.fill(options.key),
            "client_secret": self._secrets.fill(options.secret),
        }
        self._web = Web(timeout=options.timeout, secrets=self._secrets)
        self._token = ""
        self._token_ends = 0.0
        self._token_worked = False
        self._fetching: asyncio.Lock | None = None

    def impossible(self, text: str) -> str:
        """Say why the service never takes a text; empty if it does."""
        if len(text) > MOST_CHARACTERS:
            return f"a text of more than {MOST_CHARACTERS:,} characters"
        return super().impossible(text)

    def describe(self) -> Mapping[str, Any]:
        """Describe the service and how its answer is read."""
        parser = {
            "labels": self.names.describe(),
            "known_labels_only": self._options.known_labels_only,
        }
        return described(f"{self.name} {self._options.base_url.rstrip('/')}", parser)

    async def ask(self, item: Item) -> Reply:
        """Ask about one text."""
        text = item.text
        self.refuse_impossible(text)
        token = await self._current_token()
        url = f"{self._base}/rpc/2.0/nlp/v1/sentiment_classify?charset=UTF-8&access_token={token}"
        response = await self._web.send("POST", url, headers={}, body={"text": text})
        if (error := _error(response.content)) is not None:
            if response.content["error_code"] in TOKEN_INVALID:
                error = self._refused(token, error)
            raise error
        self._token_worked = True
        return self._read(response.content, item)

    def _refused(self, token: str, error: CallError) -> CallError:
        """Say whether a refused token ends the run: not if it was good once, and another may be."""
        if token == self._token and not self._token_worked:
            return error
        if token == self._token:
            self._token, self._token_worked = "", False
        return Failed("the token is not valid any more", billed=False)

    async def close(self) -> None:
        """Close the connections."""
        self._fetching = None
        await self._web.close()

    async def _current_token(self) -> str:
        """Give a token, fetched once for all calls."""
        self._fetching = self._fetching or asyncio.Lock()
        async with self._fetching:
            if not self._token or time.time() > self._token_ends:
                await self._fetch_token()
            return self._token

    async def _fetch_token(self) -> None:
        """Fetch a token; that is not billed."""
        url = f"{self._base}/oauth/2.0/token?{urlencode(self._asks_for_token)}"
        had_one = self._token_ends > 0.0
        try:
            content = (await self._web.send("POST", url, headers={})).content
            token, seconds = str(content["access_token"]), float(content["expires_in"])
        except (Rejected, Fatal) as exc:
            raise _no_entry(exc) from exc
        except Failed as exc:
            raise Failed(f"no token: {exc}", billed=False) from exc
        except UNREADABLE as exc:
            if had_one:
                raise Failed("no token", billed=False) from exc
            raise _no_entry(exc) from exc
        self._secrets.also_hide(token)
        self._token, self._token_ends = token, time.time() + max(60.0, seconds - EARLY)

    def _read(self, content: Any, item: Item) -> Reply:
        try:
            found = content["items"][0]
            said = CODES[int(found["sentiment"])]
            confidence = float(found["confidence"])
            scores = {
                "positive": float(found["positive_prob"]),
                "negative": float(found["negative_prob"]),
            }
        except UNREADABLE as exc:
            raise Failed("an answer without a sentiment") from exc
        if self._options.known_labels_only:
            said = self.names.among(scores, self._labels)
        return self.reply(said, confidence, scores, cost=self.price(item))


def _no_entry(exc: Exception) -> Fatal:
    return Fatal(
        "Baidu gives no token",
        hint=f"do {' and '.join(KEYS)} fit? ({str(exc)[:100]})",
        billed=False,
    )


def _error(content: Any) -> CallError | None:
    """Translate an error in the body. Baidu does not bill calls that fail."""
    if not isinstance(content, dict) or "error_code" not in content:
        return None
    code = content["error_code"]
    named = f"error {code}"
    if not isinstance(code, int):
        return Failed("an error without a code", billed=False)
    if code in TOO_FAST:
        return Refused(named)
    if code in TOKEN_INVALID:
        return Fatal(named, hint="does the key work?", billed=False)
    if code in NO_QUOTA:
        return Fatal(named, hint=NO_QUOTA[code], billed=False)
    if code in THEIR_FAULT:
        return Failed(named, billed=False)
    return Rejected(named, said=str(content.get("error_msg", ""))[:200], billed=False)


def make(argument: str, options: Mapping[str, Any], context: Context) -> BaiduNlp:
    """Make the client from its options."""
    if argument:
        options = {"base_url": argument, **options}
    text_column(BaiduNlp.name, context)
    given = checked(BaiduOptions, options, where="[api]")
    refuse_literal_secrets({"key": given.key, "secret": given.secret}, where="[api]")
    refuse_bad_address(given.base_url, where="[api] base_url")
    return BaiduNlp(given, context)
