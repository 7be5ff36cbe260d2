"""Amazon Comprehend: the sentiment of a text, up to 25 texts in a call."""

from collections.abc import Mapping, Sequence
from typing import Any

from masa.clients import Context
from masa.clients.options import checked
from masa.clients.services.amazon_sdk import called, of_code, sdk_client
from masa.clients.services.service import (
    Names,
    ServiceOptions,
    TextService,
    described,
    text_column,
)
from masa.clients.together import Together
from masa.clients.unreadable import UNREADABLE
from masa.errors import CallError, Failed, Rejected
from masa.records import Item, Reply

MOST_BYTES = 5_000
"""The most bytes of a text, in UTF-8."""

MOST_TOGETHER = 25


class AmazonComprehendOptions(ServiceOptions):
    """The keys of `[api]` for `client = "amazon-comprehend"`."""

    region: str | None = None
    """such as us-east-1; without it what Amazon's package finds"""
    language: str = "en"
    """of the texts"""
    known_labels_only: bool = False
    """of the scores, take the largest whose label the data has: for data without neutral"""
    together: bool = True
    """send up to 25 texts in a call"""


class AmazonComprehend(TextService):
    """A client of DetectSentiment and BatchDetectSentiment."""

    name = "amazon-comprehend"

    def __init__(self, options: AmazonComprehendOptions, context: Context) -> None:
        names = Names.build(self.name, options.labels, context.labels)
        super().__init__(options, names)
        self._options = options
        self._labels = context.labels
        self._sdk = sdk_client("comprehend", region=options.region, timeout=options.timeout)
        if options.together:
            self.batch = MOST_TOGETHER
        self._together = Together(self._ask_together, MOST_TOGETHER)

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
        parser = {"labels": self.names.describe(), "known_labels_only": options.known_labels_only}
        region = self._sdk.meta.region_name
        return described(f"{self.name} {region}", parser, {"language": options.language})

    async def ask(self, item: Item) -> Reply:
        """Ask about one text, together with others if that is allowed."""
        self.refuse_impossible(item.text)
        if self._options.together:
            return await self._together.ask(item)
        found = await called(
            self._sdk.detect_sentiment,
            timeout=self._options.timeout,
            Text=item.text,
            LanguageCode=self._options.language,
        )
        return self._read(found, item)

    async def close(self) -> None:
        """Close the connections that are not in use."""
        self._sdk.close()

    async def _ask_together(self, items: list[Item]) -> Sequence[Reply | CallError]:
        """Ask about several texts in one call; some of them may fail alone."""
        found = await called(
            self._sdk.batch_detect_sentiment,
            timeout=self._options.timeout,
            TextList=[item.text for item in items],
            LanguageCode=self._options.language,
        )
        outcomes: list[Reply | CallError] = [Failed("a batch without this text")] * len(items)
        try:
            for error in found.get("ErrorList", []):
                code, said = str(error.get("ErrorCode", "")), str(error.get("ErrorMessage", ""))
                status = 500 if code.startswith("Internal") else 400
                failed = of_code(code, status, said)
                if isinstance(failed, Failed | Rejected):
                    failed.billed = False  # Only texts that were answered are.
                outcomes[error["Index"]] = failed
            for one in found.get("ResultList", []):
                outcomes[one["Index"]] = self._read_or_error(one, items[one["Index"]])
        except UNREADABLE as exc:
            raise Failed("an answer without the places of the texts") from exc
        return outcomes

    def _read_or_error(self, found: Mapping[str, Any], item: Item) -> Reply | CallError:
        try:
            return self._read(found, item)
        except CallError as exc:
            return exc

    def _read(self, found: Mapping[str, Any], item: Item) -> Reply:
        try:
            said = str(found["Sentiment"]).lower()
            scores = {name.lower(): float(score) for name, score in found["SentimentScore"].items()}
        except UNREADABLE as exc:
            raise Failed("an answer without a sentiment") from exc
        if self._options.known_labels_only and scores:
            said = self.names.among(scores, self._labels)
        return self.reply(said, scores.get(said), scores, cost=self.price(item))


def make(argument: str, options: Mapping[str, Any], context: Context) -> AmazonComprehend:
    """Make the client from its options."""
    if argument:
        options = {"region": argument, **options}
    text_column(AmazonComprehend.name, context)
    return AmazonComprehend(checked(AmazonComprehendOptions, options, where="[api]"), context)
