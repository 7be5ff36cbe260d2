"""The options of clients: checked models whose errors name the key and how to mend it."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from masa.errors import ConfigError
from masa.records import billionths

M = TypeVar("M", bound=BaseModel)

QUERIES_ONLY = "queries-only"


def _price(given: object) -> object:
    return given if given is None or given == QUERIES_ONLY else billionths(given)  # type: ignore[arg-type]


Price = Annotated[int | Literal["queries-only"] | None, BeforeValidator(_price)]
"""Money a call, in billionths; `queries-only` where the user does not want to count money"""


class Settings(BaseModel):
    """A frozen model that knows no other keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def checked(model: type[M], options: Mapping[str, Any], *, where: str) -> M:
    """Validate settings; what is wrong is named with the key and how to mend it, without showing values."""
    try:
        return model.model_validate(dict(options))
    except ValidationError as exc:
        raise explained(exc, model, where=where) from exc


def explained(exc: ValidationError, model: type[BaseModel], *, where: str) -> ConfigError:
    """Put the first thing that is wrong into words."""
    error = first(exc)
    path = [
        str(part) for part in error["loc"] if not str(part).startswith(("function-", "literal["))
    ]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        known = list(_inner(model, path[:-1]).model_fields)
        close = get_close_matches(path[-1], known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(known)}"
        return ConfigError(f"{where} has an unknown key {key!r}", hint=hint)
    if error["type"] == "missing":
        return ConfigError(f"{where} needs {key!r}", hint="see docs/config.md for what it means")
    return ConfigError(
        f"{where}, {key!r}: {in_words(error)}", hint="see docs/config.md for what may stand there"
    )


def in_words(error: ErrorDetails) -> str:
    """Say what is wrong as masa would."""
    said = (
        error["msg"]
        .removeprefix("Value error, ")
        .removeprefix("Assertion failed, ")
        .split(", unable to")[0]
    )
    return (
        said.replace("Input should be", "it should be")
        .replace("a valid integer", "a whole number")
        .replace("a valid ", "a ")
    )


def first(exc: ValidationError) -> ErrorDetails:
    """Give the error to tell first: a key that is misspelt explains another that is missing."""
    errors = exc.errors(include_url=False, include_input=False)
    return next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])


def _inner(model: type[BaseModel], path: list[str]) -> type[BaseModel]:
    for part in path:
        field = model.model_fields.get(part)
        kinds = (
            [field.annotation, *getattr(field.annotation, "__args__", ())]
            if field is not None
            else []
        )
        model = next(
            (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)),
            model,
        )
    return model
