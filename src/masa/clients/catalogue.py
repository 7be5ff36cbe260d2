"""Every client that masa brings: what it is for and what it needs, without importing it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One client."""

    name: str
    module: str
    task: str
    reads: str = "text"
    """what its input column holds: text, image or sound"""
    extra: str = ""
    """what pip has to install besides: masa-shift[EXTRA]"""
    package: str = ""
    """the package that the extra brings"""
    variables: Sequence[str] = ()
    """the variables of the environment that its credentials are in, if nowhere else"""
    elsewhere: str = ""
    """where else the credentials may be"""
    declared: bool = False
    """whether the variables must be named in `secrets`, as the address is the user's own"""
    batch: int = 1
    """items in a call at most"""
    says: Sequence[str] = ()
    """what it calls its labels, where these are fixed"""
    models: str = ""
    """how the names of its models begin in the table of prices"""
    note: str = ""
    offered_by: str = "masa"

    @property
    def installed(self) -> bool:
        """Whether what it needs is installed."""
        if not self.package:
            return True
        try:
            return find_spec(self.package) is not None
        except ModuleNotFoundError:
            return False

    @property
    def model_prices(self) -> Mapping[str, Any]:
        """What its models cost, by name, as far as the table of prices has them."""
        from masa.clients.prices import MODELS

        return {
            name: prices
            for name, prices in MODELS.items()
            if self.models and name.startswith(self.models)
        }

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa clients --json` prints; never the value of a variable."""
        from masa.clients.prices import LOOKED_UP, TARIFFS

        tariff = TARIFFS.get(self.name)
        price = None
        if tariff is not None and tariff.price is not None:
            price = {
                "amount": float(tariff.price),
                "currency": tariff.currency,
                "unit": tariff.unit,
                "date": tariff.date,
                "source": tariff.source,
            }
        return {
            "offered_by": self.offered_by,
            "task": self.task,
            "reads": self.reads,
            "extra": self.extra or None,
            "installed": self.installed,
            "variables": {name: bool(os.environ.get(name)) for name in self.variables},
            "credentials_elsewhere": self.elsewhere or None,
            "price": price,
            "models": {
                name: {
                    "input": float(one.input),
                    "output": float(one.output),
                    "cached": None if one.cached is None else float(one.cached),
                    "currency": "USD",
                    "unit": "million tokens",
                    "date": LOOKED_UP,
                }
                for name, one in self.model_prices.items()
            },
            "batch": self.batch,
            "says": list(self.says),
            "note": self.note or None,
        }

    @property
    def lines(self) -> list[str]:
        """Tell it in a few lines; of variables whether they are set, never their values."""
        note = f" ({self.note})" if self.note else ""
        first = f"{self.name:<{WIDTH}}{self.task}{note}"
        return [first, *(f"{'':<{WIDTH}}{line}" for line in self._more())]

    def _more(self) -> Iterator[str]:
        """Tell what it needs, and what it costs."""
        if self.package:
            package = f"{self.package} is installed"
            if not self.installed:
                package = f"{self.package} is not installed: pip install 'masa-shift[{self.extra}]'"
            yield package
        for name in self.variables:
            yield f"{name} is {'set' if os.environ.get(name) else 'not set'}"
        if self.elsewhere:
            yield f"or {self.elsewhere}"
        yield from self._price_lines()
        if self.batch > 1:
            yield f"up to {self.batch} items in a call"

    def _price_lines(self) -> Iterator[str]:
        from masa.clients.prices import LOOKED_UP, TARIFFS

        tariff = TARIFFS.get(self.name)
        if tariff is not None:
            yield tariff.words
        elif self.model_prices:
            yield f"USD per million tokens sent, and received ({LOOKED_UP}):"
            for name, one in self.model_prices.items():
                yield f"  {name:<{WIDTH_OF_MODELS}}{float(one.input):>6g}{float(one.output):>6g}"
        elif self.task == LANGUAGE_MODEL:
            yield "a price by the model: input_price and output_price in [api]"


WIDTH = 20
"""The column at which the second column of a list begins."""

WIDTH_OF_MODELS = 24
"""That of a list of models."""

LANGUAGE_MODEL = "language model"
"""The task of those that are asked in words."""

_POLARITY = ("positive", "negative", "neutral")
_EMOTIONS = ("anger", "disgust", "fear", "happiness", "neutral", "sadness", "surprise")

_SERVICES = "masa.clients.services"
_MODELS = "masa.clients.language_models"
_AWS = {
    "extra": "amazon",
    "package": "boto3",
    "variables": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    "elsewhere": "wherever Amazon's package looks: profiles, single sign-on, roles",
}
_GOOGLE = {
    "extra": "google",
    "variables": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "elsewhere": "gcloud auth application-default login, or an API key in `key`",
}

ENTRIES = (
    Entry("replay", "", "a column of recorded predictions", reads="nothing"),
    Entry("python", "masa.clients.python", "a function of yours"),
    Entry("http", "masa.clients.http", "any API over HTTP: JSON, forms, files"),
    Entry(
        "amazon-comprehend",
        f"{_SERVICES}.amazon_comprehend",
        "sentiment",
        batch=25,
        says=(*_POLARITY, "mixed"),
        **_AWS,  # type: ignore[arg-type]
    ),
    Entry(
        "google-language",
        f"{_SERVICES}.google_language",
        "sentiment",
        package="google.cloud.language_v2",
        says=_POLARITY,
        **_GOOGLE,  # type: ignore[arg-type]
    ),
    Entry(
        "baidu-nlp",
        f"{_SERVICES}.baidu_nlp",
        "sentiment",
        variables=("BAIDU_API_KEY", "BAIDU_SECRET_KEY"),
        says=_POLARITY,
    ),
    Entry(
        "google-vision",
        f"{_SERVICES}.google_vision",
        "facial emotion",
        "image",
        package="google.cloud.vision_v1",
        batch=16,
        says=("happiness", "sadness", "anger", "surprise", "neutral"),
        **_GOOGLE,  # type: ignore[arg-type]
    ),
    Entry(
        "microsoft-face",
        f"{_SERVICES}.microsoft_face",
        "facial emotion",
        "image",
        variables=("AZURE_FACE_KEY",),
        declared=True,
        says=("contempt", *_EMOTIONS),
        note="withdrawn by Microsoft on 30 June 2023",
    ),
    Entry(
        "facepp",
        f"{_SERVICES}.facepp",
        "facial emotion",
        "image",
        variables=("FACEPP_API_KEY", "FACEPP_API_SECRET"),
        says=_EMOTIONS,
    ),
    Entry(
        "google-speech",
        f"{_SERVICES}.google_speech",
        "spoken commands",
        "sound",
        package="google.cloud.speech_v2",
        **_GOOGLE,  # type: ignore[arg-type]
    ),
    Entry(
        "microsoft-speech",
        f"{_SERVICES}.microsoft_speech",
        "spoken commands",
        "sound",
        variables=("AZURE_SPEECH_KEY",),
    ),
    Entry(
        "ibm-speech",
        f"{_SERVICES}.ibm_speech",
        "spoken commands",
        "sound",
        extra="ibm",
        package="ibm_watson",
        variables=("SPEECH_TO_TEXT_APIKEY", "SPEECH_TO_TEXT_URL"),
    ),
    Entry(
        "openai", f"{_MODELS}.openai", LANGUAGE_MODEL, variables=("OPENAI_API_KEY",), models="gpt"
    ),
    Entry(
        "anthropic",
        f"{_MODELS}.anthropic",
        LANGUAGE_MODEL,
        variables=("ANTHROPIC_API_KEY",),
        models="claude",
    ),
    Entry(
        "gemini",
        f"{_MODELS}.gemini",
        LANGUAGE_MODEL,
        variables=("GEMINI_API_KEY",),
        models="gemini",
    ),
    Entry(
        "azure-openai",
        f"{_MODELS}.azure_openai",
        LANGUAGE_MODEL,
        variables=("AZURE_OPENAI_API_KEY",),
        declared=True,
    ),
    Entry(
        "bedrock",
        f"{_MODELS}.bedrock",
        LANGUAGE_MODEL,
        models="amazon.",
        **_AWS,  # type: ignore[arg-type]
    ),
)

CATALOGUE: Mapping[str, Entry] = {entry.name: entry for entry in ENTRIES}
