"""The options of clients: checked models whose errors name the key and how to fix it."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from masa.errors import ConfigError
from masa.records import billionths

M = TypeVar("M", bound=BaseModel)

QUERIES_ONLY = "queries-only"


def _price(given: object) -> object:
    if given is None or given == QUERIES_ONLY:
        return given
    return billionths(given)  # type: ignore[arg-type]


Price = Annotated[int | Literal["queries-only"] | None, BeforeValidator(_price)]
"""Money per call, in billionths; `queries-only` if the user does not want to count money."""


def refuse_misspelled(mapped: Mapping[str, str], labels: Sequence[str]) -> None:
    """Raise where what an answer is mapped to is nearly a label of the data, and is none."""
    for name, label in mapped.items():
        if label in labels:
            continue
        close = get_close_matches(label.lower(), [one.lower() for one in labels], 1, 0.75)
        if close:
            meant = next(one for one in labels if one.lower() == close[0])
            raise ConfigError(
                f"[api] labels maps {name!r} to {label!r}, which no item has as its label",
                hint=f"did you mean {meant!r}?",
            )


class OptionsModel(BaseModel):
    """A frozen model that refuses unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False
    )


def whole_price(price: int | str | None) -> int:
    """Return the price of a call in billionths; 0 where money is not counted."""
    if isinstance(price, int):
        return price
    return 0


def checked(model: type[M], options: Mapping[str, Any], *, where: str) -> M:
    """Validate options; an error names the key and how to fix it, without showing values."""
    try:
        return model.model_validate(dict(options))
    except ValidationError as exc:
        raise explained(exc, model, where=where) from exc


def explained(exc: ValidationError, model: type[BaseModel], *, where: str) -> ConfigError:
    """Explain the first thing that is wrong."""
    error = first(exc)
    # Pydantic adds the names of its validators to the path; they mean nothing to users.
    path = [
        str(part) for part in error["loc"] if not str(part).startswith(("function-", "literal["))
    ]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        known = list(_model_at(model, path[:-1]).model_fields)
        hint = f"the keys are {', '.join(known)}"
        if close := get_close_matches(path[-1], known, 1):
            hint = f"did you mean {close[0]!r}?"
        return ConfigError(f"{where} has an unknown key {key!r}", hint=hint)
    if error["type"] == "missing":
        return ConfigError(f"{where} needs {key!r}", hint="see docs/config.md for what it means")
    return ConfigError(
        f"{where}, {key!r}: {in_words(error)}", hint="see docs/config.md for its possible values"
    )


def in_words(error: ErrorDetails) -> str:
    """Turn pydantic's message into masa's words."""
    said = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    said = said.split(", unable to")[0]
    said = said.replace("Input should be", "it should be")
    return said.replace("a valid integer", "a whole number").replace("a valid ", "a ")


def first(exc: ValidationError) -> ErrorDetails:
    """Return the error to report first: a misspelt key may explain one that is missing."""
    errors = exc.errors(include_url=False, include_input=False)
    return next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])


def _model_at(model: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """Follow a path of keys to the model that they lead to."""
    for part in path:
        field = model.model_fields.get(part)
        if field is None:
            continue
        for kind in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
                break
    return model
