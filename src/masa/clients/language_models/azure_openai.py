"""OpenAI's models on Azure: the same chat completions at an address of one's own."""

from collections.abc import Mapping
from typing import Any

from masa.clients import Context
from masa.clients.language_models.model import model_options
from masa.clients.language_models.openai import ChatModel, EndpointOptions
from masa.clients.secrets import refuse_bad_address, refuse_bad_headers, refuse_literal_secrets

KEY = "AZURE_OPENAI_API_KEY"


class AzureOpenAIOptions(EndpointOptions):
    """The keys of `[api]` for `client = "azure-openai"`; model is the name of the deployment."""

    endpoint: str
    """such as https://NAME.openai.azure.com"""
    api_version: str = "2024-10-21"
    """of Azure's API"""
    key: str = f"${{{KEY}}}"
    """the key, as ${NAME}"""


class AzureOpenAI(ChatModel):
    """A client of a deployment on Azure."""

    name = "azure-openai"

    def __init__(self, options: AzureOpenAIOptions, context: Context) -> None:
        self._azure = options
        url = (
            f"{options.endpoint.rstrip('/')}/openai/deployments/{options.model}/chat/completions"
            f"?api-version={options.api_version}"
        )
        super().__init__(options, context, url=url, headers={"api-key": options.key})

    @property
    def address(self) -> str:
        """Where the model is, without secrets."""
        return f"{self._azure.endpoint.rstrip('/')} {self._azure.api_version}"


def make(argument: str, options: Mapping[str, Any], context: Context) -> AzureOpenAI:
    """Make the client from its options."""
    given = model_options(AzureOpenAIOptions, argument, options, context)
    refuse_literal_secrets(
        {"key": given.key, "headers": given.headers, "extra": given.extra}, where="[api]"
    )
    refuse_bad_address(given.endpoint, where="[api] endpoint")
    refuse_bad_headers(given.headers)
    return AzureOpenAI(given, context)
