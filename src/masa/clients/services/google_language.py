"""Google Natural Language: the sentiment of a text, from a score between -1 and 1."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from masa.clients import Context
from masa.clients.options import checked
from masa.clients.services.google_sdk import GoogleOptions, Sdk, missing
from masa.clients.services.service import (
    Names,
    ServiceOptions,
    TextService,
    described,
    text_column,
)
from masa.errors import Failed
from masa.records import Item, Reply

HOST = "language.googleapis.com"

MOST_BYTES = 1_000_000


class GoogleLanguageOptions(ServiceOptions, GoogleOptions):
    """The keys of `[api]` for `client = "google-language"`."""

    language: str | None = None
    """such as en; without it Google finds out"""
    neutral: float = Field(default=0.0, ge=0.0, le=1.0)
    """scores of at most this size, on either side of 0, are neutral"""


class GoogleLanguage(TextService):
    """A client of analyzeSentiment, version 2."""

    name = "google-language"

    def __init__(self, options: GoogleLanguageOptions, context: Context) -> None:
        super().__init__(options, Names.build(self.name, options.labels, context.labels))
        try:
            from google.cloud import language_v2
        except ImportError as exc:
            raise missing(exc, self.name) from exc
        self._options = options
        self._api = language_v2
        self._sdk = Sdk(
            language_v2.LanguageServiceClient,
            options,
            context,
            host=HOST,
            timeout=options.timeout,
        )

    def quantity(self, item: Item) -> float:
        """Give the characters of the text."""
        return len(item.text)

    def impossible(self, text: str) -> str:
        """Say why the service never takes a text; empty if it does."""
        if len(text.encode()) > MOST_BYTES:
            return f"a text of more than {MOST_BYTES:,} bytes"
        return super().impossible(text)

    def describe(self) -> Mapping[str, Any]:
        """Describe the service and how its answer is read."""
        options = self._options
        parser = {"labels": self.names.describe(), "neutral": options.neutral}
        return described(f"{self.name} v2", parser, {"language": options.language})

    async def ask(self, item: Item) -> Reply:
        """Ask about one text."""
        self.refuse_impossible(item.text)
        document = self._api.Document(type_=self._api.Document.Type.PLAIN_TEXT, content=item.text)
        if self._options.language:
            document.language_code = self._options.language
        found = await self._sdk.ask(
            "analyze_sentiment",
            request={"document": document, "encoding_type": self._api.EncodingType.UTF8},
        )
        if "document_sentiment" not in found:
            raise Failed("an answer without a sentiment")
        score = float(found.document_sentiment.score)
        # It is no probability, only larger where Google is surer of one side.
        return self.reply(sign(score, self._options.neutral), abs(score), cost=self.price(item))

    async def close(self) -> None:
        """Close the connections that are not in use."""
        self._sdk.close()


def sign(score: float, neutral: float) -> str:
    """Give the sentiment of a score.

    >>> sign(0.3, 0.0), sign(-0.1, 0.25), sign(0.0, 0.0)
    ('positive', 'neutral', 'neutral')
    """
    if abs(score) <= neutral:
        return "neutral"
    return "positive" if score > 0 else "negative"


def make(argument: str, options: Mapping[str, Any], context: Context) -> GoogleLanguage:
    """Make the client from its options."""
    if argument:
        options = {"language": argument, **options}
    text_column(GoogleLanguage.name, context)
    return GoogleLanguage(checked(GoogleLanguageOptions, options, where="[api]"), context)
