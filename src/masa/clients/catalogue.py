"""Every client that masa brings: what it is for and what it needs, without importing it."""

import os
from collections.abc import Mapping, Sequence
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

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa clients --json` prints; never the value of a variable."""
        from masa.clients.prices import TARIFFS

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
            "batch": self.batch,
            "note": self.note or None,
        }

    @property
    def lines(self) -> list[str]:
        """Tell it in a few lines; of variables whether they are set, never their values."""
        needs = []
        if not self.installed:
            needs.append(f"pip install 'masa-shift[{self.extra}]'")
        for name in self.variables:
            needs.append(f"{name} {'is set' if os.environ.get(name) else 'is not set'}")
        if self.elsewhere:
            needs.append(f"or {self.elsewhere}")
        lines = [f"{self.name:<18} {self.task}" + (f" ({self.note})" if self.note else "")]
        if needs:
            lines.append(f"{'':<18} {'; '.join(needs)}")
        if self.price_words:
            lines.append(f"{'':<18} {self.price_words}")
        return lines

    @property
    def price_words(self) -> str:
        """The price in words, and how many items go into a call."""
        from masa.clients.prices import TARIFFS

        tariff = TARIFFS.get(self.name)
        words = "" if tariff is None else tariff.words
        if self.batch > 1:
            words += f"; up to {self.batch} items in a call"
        return words


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
        **_AWS,  # type: ignore[arg-type]
    ),
    Entry(
        "google-language",
        f"{_SERVICES}.google_language",
        "sentiment",
        package="google.cloud.language_v2",
        **_GOOGLE,  # type: ignore[arg-type]
    ),
    Entry(
        "baidu-nlp",
        f"{_SERVICES}.baidu_nlp",
        "sentiment",
        variables=("BAIDU_API_KEY", "BAIDU_SECRET_KEY"),
    ),
    Entry(
        "google-vision",
        f"{_SERVICES}.google_vision",
        "facial emotion",
        "image",
        package="google.cloud.vision_v1",
        batch=16,
        **_GOOGLE,  # type: ignore[arg-type]
    ),
    Entry(
        "microsoft-face",
        f"{_SERVICES}.microsoft_face",
        "facial emotion",
        "image",
        variables=("AZURE_FACE_KEY",),
        declared=True,
        note="withdrawn by Microsoft on 30 June 2023",
    ),
    Entry(
        "facepp",
        f"{_SERVICES}.facepp",
        "facial emotion",
        "image",
        variables=("FACEPP_API_KEY", "FACEPP_API_SECRET"),
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
    Entry("openai", f"{_MODELS}.openai", "language model", variables=("OPENAI_API_KEY",)),
    Entry("anthropic", f"{_MODELS}.anthropic", "language model", variables=("ANTHROPIC_API_KEY",)),
    Entry("gemini", f"{_MODELS}.gemini", "language model", variables=("GEMINI_API_KEY",)),
    Entry(
        "azure-openai",
        f"{_MODELS}.azure_openai",
        "language model",
        variables=("AZURE_OPENAI_API_KEY",),
        declared=True,
    ),
    Entry("bedrock", f"{_MODELS}.bedrock", "language model", **_AWS),  # type: ignore[arg-type]
)

CATALOGUE: Mapping[str, Entry] = {entry.name: entry for entry in ENTRIES}
