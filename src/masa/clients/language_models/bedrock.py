"""Amazon Bedrock: Converse, for every model that Amazon hosts."""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from masa.clients import Context
from masa.clients.language_models.model import LanguageModel, ModelOptions, Said, model_options
from masa.clients.options import QUERIES_ONLY
from masa.clients.prices import Tokens
from masa.clients.services.amazon_sdk import called, sdk_client
from masa.clients.unreadable import UNREADABLE
from masa.errors import ConfigError, Failed

PRICED = ("us-east-", "us-west-")
"""Regions that have the prices of the table; elsewhere the same tokens cost more."""

ENDED = {
    "max_tokens": "cut off",
    "model_context_window_exceeded": "cut off",
    "guardrail_intervened": "filtered",
    "content_filtered": "filtered",
}


class BedrockOptions(ModelOptions):
    """The keys of `[api]` for `client = "bedrock"`; model is the model's or profile's id."""

    region: str | None = None
    """such as us-east-1; without it what Amazon's package finds"""


class Bedrock(LanguageModel):
    """A client of Converse."""

    name = "bedrock"
    write_factor = Fraction("1.25")
    limit = "maxTokens"

    def __init__(self, options: BedrockOptions, context: Context) -> None:
        super().__init__(options, context)
        self._own = options
        self._sdk = sdk_client("bedrock-runtime", region=options.region, timeout=options.timeout)
        region = str(self._sdk.meta.region_name)
        if options.price is None and options.input_price is None and not region.startswith(PRICED):
            raise ConfigError(
                f"[api] does not say what tokens cost in {region}",
                hint="masa's table has the prices of regions of the United States: set "
                "input_price and output_price (money per million tokens), or "
                f'price = "{QUERIES_ONLY}"',
            )

    @property
    def address(self) -> str:
        """Where the model is."""
        return f"bedrock {self._sdk.meta.region_name}"

    def own_request(self, prompt: str) -> dict[str, Any]:
        """Write what Converse takes, without `extra`."""
        options = self._own
        how: dict[str, Any] = {"maxTokens": options.max_tokens}
        if options.temperature is not None:
            how["temperature"] = options.temperature
        request: dict[str, Any] = {
            "modelId": options.model,
            "messages": [{"role": "user", "content": [{"text": prompt}]}],
            "inferenceConfig": how,
        }
        if options.system is not None:
            request["system"] = [{"text": options.system}]
        if options.structured:
            # Amazon takes the schema as a text.
            schema = {"name": "answer", "schema": json.dumps(self.schema())}
            textual = {"type": "json_schema", "structure": {"jsonSchema": schema}}
            request["outputConfig"] = {"textFormat": textual}
        return request

    async def said(self, request: dict[str, Any]) -> Said:
        """Send a request and read what the model said."""
        found = await called(self._sdk.converse, timeout=self._own.timeout, **request)
        try:
            parts = [
                part["text"] for part in found["output"]["message"]["content"] if "text" in part
            ]
            ended = ENDED.get(str(found.get("stopReason")), "")
            return Said("".join(parts), ended, None, _tokens(found.get("usage")))
        except UNREADABLE as exc:
            raise Failed("an answer without a message") from exc

    async def close(self) -> None:
        """Close the connections that are not in use."""
        self._sdk.close()


def _tokens(usage: object) -> Tokens | None:
    """Read how many tokens were counted: what was cached is not among the input tokens."""
    if not isinstance(usage, Mapping):
        return None
    try:
        cached = int(usage.get("cacheReadInputTokens") or 0)
        written = int(usage.get("cacheWriteInputTokens") or 0)
        sent = int(usage["inputTokens"]) + cached + written
        return Tokens(sent, int(usage["outputTokens"]), cached, written)
    except UNREADABLE:
        return None


def make(argument: str, options: Mapping[str, Any], context: Context) -> Bedrock:
    """Make the client from its options."""
    return Bedrock(model_options(BedrockOptions, argument, options, context), context)
