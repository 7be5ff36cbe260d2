"""What the clients of named services share: a price by the unit, the names of labels, inputs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from masa.clients import Context
from masa.clients.catalogue import CATALOGUE
from masa.clients.files import UNKNOWN, Files, kind_of, only_column
from masa.clients.options import QUERIES_ONLY, OptionsModel, refuse_misspelled
from masa.clients.prices import TARIFFS, Tariff
from masa.clients.secrets import Secrets
from masa.clients.web import Web
from masa.errors import ConfigError, DataError, Rejected
from masa.records import Item, Reply, billionths

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "positive": ("positive", "pos"),
    "negative": ("negative", "neg"),
    "neutral": ("neutral", "neu"),
    "mixed": ("mixed",),
    "anger": ("anger", "angry"),
    "contempt": ("contempt",),
    "disgust": ("disgust", "disgusted"),
    "fear": ("fear", "fearful", "afraid"),
    "happiness": ("happiness", "happy", "joy"),
    "sadness": ("sadness", "sad", "sorrow"),
    "surprise": ("surprise", "surprised"),
}
"""What services call a sentiment or an emotion, and what data may call it."""


def _money(given: object) -> object:
    if given is None or given == QUERIES_ONLY:
        return given
    billionths(given)  # type: ignore[arg-type]  # Raises for what is not an amount.
    return Fraction(str(given))


UnitPrice = Annotated[Fraction | Literal["queries-only"] | None, BeforeValidator(_money)]
"""Money per unit of the service; `queries-only` if the user does not want to count money."""


class ServiceOptions(OptionsModel):
    """The keys of `[api]` that all named services have."""

    labels: dict[str, str] = Field(default_factory=dict)
    """what the service calls a label -> what the data calls it"""
    price: UnitPrice = None
    """money per unit of the service, in place of masa's table, or `queries-only`"""
    timeout: float = Field(default=30.0, gt=0, le=3600)
    """seconds after which a call has failed"""


class FileOptions(ServiceOptions):
    """The keys of `[api]` of services that are sent files."""

    outside: bool = False
    """whether files outside the data's folder, and URLs, may be read"""
    nothing: str = "nothing"
    """the prediction where the service recognised nothing"""


class Service:
    """A client of a named service."""

    name = ""
    columns: Sequence[str] = ()
    batch = 1

    def __init__(self, options: ServiceOptions, names: "Names") -> None:
        self.tariff = _tariff(self.name, options.price)
        self.priced = options.price != QUERIES_ONLY
        self.names = names

    def quantity(self, item: Item) -> float:
        """Give how much of what the service bills a call about an item is, at most."""
        del item
        return 1.0

    def price(self, item: Item) -> int:
        """Return the most that a call may cost, in billionths."""
        if not self.priced:
            return 0
        return self.tariff.cost(self.quantity(item))

    def reply(
        self,
        said: str,
        confidence: float | None = None,
        scores: Mapping[str, float] | None = None,
        *,
        version: str | None = None,
        cost: int | None = None,
    ) -> Reply:
        """Make a reply with the names that the data uses."""
        if scores is not None:
            scores = {self.names.of(name): score for name, score in scores.items()}
        return Reply(self.names.of(said), confidence, version, cost, scores)


class TextService(Service):
    """A client of a service that is sent texts."""

    def impossible(self, text: str) -> str:
        """Say why the service never takes a text; empty if it does."""
        return "an empty text" if not text.strip() else ""

    def check(self, items: Iterable[Item]) -> None:
        """Raise for the first text that the service never takes: it could never be measured."""
        for item in items:
            if why := self.impossible(item.text):
                raise DataError(
                    f"{why}, which {self.name} never takes",
                    hint="shorten it, or leave its row out of the data",
                )

    def refuse_impossible(self, text: str) -> None:
        """Raise for a text that the service never takes, before it is sent."""
        if why := self.impossible(text):
            raise Rejected(why, billed=False)


def _tariff(name: str, price: object) -> Tariff:
    """Give the tariff of a service, with the user's price if there is one."""
    tariff = TARIFFS[name]
    if isinstance(price, Fraction):
        return replace(tariff, price=price, date="your own price")
    if tariff.price is None and price is None:
        raise ConfigError(
            f"the price of {name} is not known",
            hint=f'set price to the money per {tariff.unit}, or to "{QUERIES_ONLY}"',
        )
    return tariff


def written_as(name: str, labels: Sequence[str]) -> list[str]:
    """Give the labels of the data that are what a service calls by this name.

    >>> written_as("happiness", ["Happy", "sad"])
    ['Happy']
    """
    return [label for label in labels if label.strip().lower() in SPELLINGS[name]]


class Names:
    """What a service calls its labels, and what the data calls them."""

    def __init__(self, of: Mapping[str, str]) -> None:
        self._of = dict(of)

    @classmethod
    def build(cls, service: str, given: Mapping[str, str], labels: Sequence[str]) -> "Names":
        """Pair the names: as the user says, else where they differ by case or a short form.

        Raise where no name of the service is a label of the data: every call would be wasted.
        """
        known = CATALOGUE[service].says
        for name in given:
            if name.lower() not in known:
                close = get_close_matches(name.lower(), known, 1)
                hint = f"it says {', '.join(known)}"
                if close:
                    hint = f"did you mean {close[0]!r}?"
                raise ConfigError(f"{service} says no {name!r}", hint=hint)
        refuse_misspelled(given, labels)
        told = {name.lower(): label for name, label in given.items()}
        of = {}
        for name in known:
            alike = written_as(name, labels)
            of[name] = told.get(name, alike[0] if len(alike) == 1 else name)
        if labels and not set(of.values()) & set(labels):
            some = ", ".join(map(repr, labels[:6]))
            raise ConfigError(
                f"{service} says {', '.join(known)}; the labels of the data are {some}",
                hint=f'map them in [api]: labels = {{ {known[0]} = "{labels[0]}" }}',
            )
        return cls(of)

    def of(self, said: str) -> str:
        """Give what the data calls it."""
        return self._of.get(said, said)

    def among(self, scores: Mapping[str, float], labels: Sequence[str]) -> str:
        """Give the name with the largest score of those that are labels of the data.

        Of equal scores the one whose name sorts first is taken.
        """
        names = [name for name in scores if self.of(name) in labels] or list(scores)
        return min(names, key=lambda name: (-scores[name], name))

    def describe(self) -> dict[str, str]:
        """Give the pairs, for what makes answers comparable."""
        return dict(self._of)


def best(scores: Mapping[str, float]) -> str:
    """Give the name with the largest score; of equal ones the one that sorts first."""
    return min(scores, key=lambda name: (-scores[name], name))


def text_column(name: str, context: Context) -> None:
    """Raise where there is nothing to read."""
    if not context.inputs:
        raise ConfigError(
            f"{name} has nothing to read",
            hint="name the column of texts: --input COL, or input in [data]",
        )


class FileService(Service):
    """A client of a service that is sent images or sounds."""

    most = 0
    """the most bytes of a file that it takes"""
    what = "image files"
    mend = "convert it, or leave its row out of the data"
    kinds: Sequence[str] = ("image/",)
    """with what the kinds of files begin that it takes; any where there are none"""

    def __init__(
        self,
        options: FileOptions,
        names: Names,
        context: Context,
        *,
        passes_urls: bool = False,
    ) -> None:
        """With `passes_urls`, URLs are given to the service, which fetches them itself."""
        super().__init__(options, names)
        self._fetching = Web(timeout=options.timeout, secrets=Secrets(context, ""))
        self.files = Files(
            only_column(context.inputs, client=self.name, what=self.what),
            folder=context.folder,
            outside=options.outside,
            most=self.most,
            web=None if passes_urls else self._fetching,
        )

    def check(self, items: Iterable[Item]) -> None:
        """Raise for the first file that cannot be sent, or that the service would not take."""
        for item in items:
            self.files.check([item])
            path = self.files.path(item)
            if path is not None and (why := self.refused(path)):
                raise DataError(f"{self.files.where(item)} {why}", hint=self.mend)

    def refused(self, content: Path | bytes) -> str:
        """Say why a file is not sent; empty if it is."""
        kind = kind_of(content)
        if self.kinds and not kind.startswith(tuple(self.kinds)):
            known = "not an image or a sound" if kind == UNKNOWN else kind
            return f"is {known}; {self.name} takes {self.what}"
        return ""

    async def close(self) -> None:
        """Close the connections."""
        await self._fetching.close()


def described(
    api: str, parser: Mapping[str, Any], prompt: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Describe what makes answers comparable."""
    found: dict[str, Any] = {"api": api, "parser": dict(parser)}
    if prompt:
        found["prompt"] = dict(prompt)
    return found
