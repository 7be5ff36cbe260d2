"""What services charge: one dated table, and the rules by which a call is billed.

Prices change, and volumes, regions and contracts have prices of their own: every one of them can
be overridden in masa.toml. What is billed is counted in the provider's own units, rounded as it
rounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from masa.records import BILLION


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a service charges for a quantity: characters, seconds, images or calls."""

    price: Fraction | None
    """money per unit; None where no price is known"""
    unit: str
    """the unit in words"""
    per: Fraction = Fraction(1)
    """the quantity in a unit"""
    step: Fraction = Fraction(1)
    """what the quantity is rounded up to a multiple of; 0 where it is not"""
    least: Fraction = Fraction(0)
    """the smallest quantity that is billed"""
    currency: str = "USD"
    date: str = ""
    """when the price was looked up"""
    source: str = ""

    def billed(self, quantity: float) -> Fraction:
        """Give the quantity that is billed.

        >>> float(Tariff(Fraction(1), "100 characters", Fraction(100), Fraction(100)).billed(101))
        200.0
        """
        exact = Fraction(str(quantity))  # A tenth is a tenth, and not the number nearest to it.
        rounded = ceil(exact / self.step) * self.step if self.step else exact
        return max(rounded, self.least)

    def cost(self, quantity: float) -> int:
        """Give what a quantity costs, in billionths rounded up; 0 without a price."""
        if self.price is None:
            return 0
        return ceil(self.billed(quantity) / self.per * self.price * BILLION)

    @property
    def words(self) -> str:
        """The price in words.

        >>> Tariff(Fraction("0.001"), "call", date="2026-11").words
        '0.001 USD per call (2026-11)'
        """
        if self.price is None:
            return "no price known"
        return f"{float(self.price):g} {self.currency} per {self.unit} ({self.date})"


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """What a model charges per million tokens."""

    input: Fraction
    output: Fraction
    """thinking counts as output"""
    cached: Fraction | None = None
    """input that the provider found in its cache; the full price where None"""
    written: Fraction | None = None
    """input that is written to the cache; the full price where None"""

    def cost(self, tokens: "Tokens") -> int:
        """Give what so many tokens cost, in billionths rounded up.

        >>> prices = TokenPrices(Fraction(1), Fraction(5), cached=Fraction("0.1"))
        >>> prices.cost(Tokens(sent=1000, cached=900, received=10))
        240000
        """
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is None else self.written
        fresh = tokens.sent - tokens.cached - tokens.written
        money = (
            fresh * self.input
            + tokens.cached * cached
            + tokens.written * written
            + tokens.received * self.output
        )
        return ceil(money * BILLION / 1_000_000)

    @property
    def dearest_input(self) -> Fraction:
        """The most that a token of the input can cost, per million."""
        return max(self.input, self.written or self.input)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a call as the provider counted them."""

    sent: int
    """all of the input, whatever of it was cached"""
    received: int
    """all of the output, thinking included"""
    cached: int = 0
    written: int = 0

    def __post_init__(self) -> None:
        if min(self.sent - self.cached - self.written, self.received) < 0:
            raise ValueError("fewer tokens than none")
        if min(self.cached, self.written) < 0:
            raise ValueError("fewer tokens than none")


def _per_minute(price: str, step: str, **more: str) -> Tariff:
    return Tariff(Fraction(price), "minute", Fraction(60), Fraction(step), **more)  # type: ignore[arg-type]


LOOKED_UP = "2026-11"

TARIFFS: Mapping[str, Tariff] = {
    "amazon-comprehend": Tariff(
        Fraction("0.0001"),
        "100 characters, at least 300 for a text",
        Fraction(100),
        Fraction(100),
        Fraction(300),
        date=LOOKED_UP,
        source="aws.amazon.com/comprehend/pricing, first tier",
    ),
    "google-language": Tariff(
        Fraction("0.001"),
        "1,000 characters",
        Fraction(1000),
        Fraction(1000),
        Fraction(1000),
        date=LOOKED_UP,
        source="cloud.google.com/natural-language/pricing, after the free 5,000 units a month",
    ),
    "baidu-nlp": Tariff(
        Fraction("0.0025"),
        "call",
        currency="CNY",
        date=LOOKED_UP,
        source="cloud.baidu.com/doc/NLP/s/gk6z52dfl",
    ),
    "google-vision": Tariff(
        Fraction("0.0015"),
        "image",
        date=LOOKED_UP,
        source="cloud.google.com/vision/pricing, after the free 1,000 images a month",
    ),
    "microsoft-face": Tariff(None, "call"),
    "facepp": Tariff(None, "call"),
    "google-speech": _per_minute(
        "0.016",
        "1",
        date=LOOKED_UP,
        source="cloud.google.com/speech-to-text/pricing, version 2, by the second",
    ),
    "microsoft-speech": Tariff(
        Fraction(1),
        "hour",
        Fraction(3600),
        Fraction(1),
        date=LOOKED_UP,
        source="not confirmed by a page of the vendor's: check it",
    ),
    "ibm-speech": _per_minute(
        "0.02",
        "0",
        date="2023",
        source="cloud.ibm.com, plan Plus; the sum of a month is rounded, not each call",
    ),
}
"""By service. Looked up in stored copies of the pages named; check before you rely on one."""


def _tokens(
    input_: str, output: str, cached: str | None = None, written: str | None = None
) -> TokenPrices:
    return TokenPrices(
        Fraction(input_),
        Fraction(output),
        None if cached is None else Fraction(cached),
        None if written is None else Fraction(written),
    )


MODELS: Mapping[str, TokenPrices] = {
    "gpt-4o-mini": _tokens("0.15", "0.60", "0.075"),
    "gpt-4o": _tokens("2.50", "10", "1.25"),
    "gpt-4.1": _tokens("2", "8", "0.50"),
    "gpt-5-mini": _tokens("0.25", "2", "0.025"),
    "gpt-5.4-nano": _tokens("0.20", "1.25", "0.02"),
    "gpt-5.4-mini": _tokens("0.75", "4.50", "0.075"),
    "claude-haiku-4-5": _tokens("1", "5", "0.10", "1.25"),
    "claude-sonnet-4-5": _tokens("3", "15", "0.30", "3.75"),
    "claude-sonnet-4-6": _tokens("3", "15", "0.30", "3.75"),
    "claude-opus-5-5": _tokens("4", "20", "0.20", "5"),
    "gemini-2.5-flash-lite": _tokens("0.10", "0.40", "0.01"),
    "gemini-2.5-flash": _tokens("0.30", "2.50", "0.03"),
    "gemini-2.5-pro": _tokens("1.25", "10", "0.125"),
    "gemini-3.1-flash-lite": _tokens("0.25", "1.50"),
    "amazon.nova-micro-v1:0": _tokens("0.035", "0.14", "0.00875"),
    "amazon.nova-lite-v1:0": _tokens("0.06", "0.24", "0.015"),
    "amazon.nova-pro-v1:0": _tokens("0.80", "3.20", "0.20"),
}
"""US dollars per million tokens of prompts of usual length, by model, in stored copies of pages of
the vendors and of others from 2026. A name with a date behind it is the same model, and on Amazon's
Bedrock one with the region of a profile before it."""

REGIONS = ("us.", "global.")
"""With what the names of those of Bedrock's inference profiles begin that cost what a model does
in the United States."""


def model_prices(model: str) -> TokenPrices | None:
    """Give the prices of a model, if the table has them.

    >>> model_prices("gpt-4o-mini-2024-07-18") == model_prices("gpt-4o-mini")
    True
    >>> model_prices("gpt-4o-mini-audio") is None
    True
    """
    for region in REGIONS:
        model = model.removeprefix(region)
    for name, prices in MODELS.items():
        rest = model.removeprefix(name)
        is_date = rest.replace("-", "").isdecimal() and len(rest.replace("-", "")) == 8
        if model == name or (model.startswith(name) and is_date):
            return prices
    return None
