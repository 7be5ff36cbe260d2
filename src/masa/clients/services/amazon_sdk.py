"""Amazon's package: a client that asks once, and what its errors mean."""

from collections.abc import Callable
from typing import Any

from masa.clients.threads import in_a_thread
from masa.errors import (
    CallError,
    ConfigError,
    Failed,
    Fatal,
    MissingPackageError,
    Refused,
    Rejected,
)

THROTTLED = {
    "ThrottlingException",
    "Throttling",
    "ThrottledException",
    "TooManyRequestsException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "SlowDown",
    "ModelNotReadyException",
}

NO_ENTRY = {
    "UnrecognizedClientException": "do AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY fit?",
    "InvalidSignatureException": "do AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY fit?",
    "SignatureDoesNotMatch": "do AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY fit?",
    "InvalidClientTokenId": "does AWS_ACCESS_KEY_ID exist?",
    "IncompleteSignature": "is AWS_SECRET_ACCESS_KEY whole?",
    "MissingAuthenticationToken": "are there credentials?",
    "ExpiredTokenException": "the session has expired: log in again",
    "ExpiredToken": "the session has expired: log in again",
    "RequestExpired": "is this machine's clock right?",
    "OptInRequired": "is the account active for this service?",
    "SubscriptionRequiredException": "is the account active for this service?",
    "UnsupportedLanguageException": "correct language in [api]",
    "ResourceNotFoundException": "is there such a model in this region?",
    "ServiceQuotaExceededException": "the account's quota is used up",
}
"""Errors that every call would get, and what may help."""

EXTRA = "pip install 'masa-shift[amazon]'"


def sdk_client(service: str, *, region: str | None, timeout: float, at_once: int = 64) -> Any:
    """Make a client of Amazon's package that never tries again by itself.

    Credentials come from wherever the package finds them.
    """
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, InvalidRegionError, NoRegionError
    except ImportError as exc:
        raise MissingPackageError("Amazon's services need boto3", hint=EXTRA) from exc
    once = Config(
        retries={"total_max_attempts": 1},
        connect_timeout=min(timeout, 10.0),
        read_timeout=timeout,
        max_pool_connections=at_once,
    )
    try:
        session = boto3.session.Session(region_name=region)
        client = session.client(service, config=once)
        if session.get_credentials() is None:
            raise ConfigError(
                "there are no AWS credentials",
                hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in: aws sso login",
            )
        return client
    except (NoRegionError, InvalidRegionError, ValueError) as exc:
        what = "no region is set" if region is None else f"{region!r} is no region"
        raise ConfigError(
            f"Amazon's package: {what}",
            hint='set region in [api], such as "us-east-1", or AWS_DEFAULT_REGION',
        ) from exc
    except BotoCoreError as exc:
        # It says which profile or variable is missing, and no value.
        raise ConfigError(
            f"Amazon's package: {exc}",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile that exists",
        ) from exc


async def called(operation: Callable[..., Any], *, timeout: float, **given: Any) -> Any:
    """Call an operation of Amazon's package; raise a CallError where there is no answer."""
    try:
        return await in_a_thread(lambda: operation(**given), timeout=timeout)
    except CallError:
        raise
    except Exception as exc:
        raise meaning(exc) from exc


def meaning(exc: Exception) -> CallError:
    """Translate an error of Amazon's package."""
    from botocore import exceptions as aws

    if isinstance(exc, aws.ClientError):
        error = exc.response.get("Error", {})
        status = int(exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        return of_code(str(error.get("Code", "")), status, str(error.get("Message", "")))
    if isinstance(exc, aws.NoCredentialsError | aws.PartialCredentialsError):
        return Fatal(
            "there are no AWS credentials",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in with aws sso login",
            billed=False,
        )
    if isinstance(exc, aws.ParamValidationError):
        return Rejected("Amazon's package refuses this input", billed=False)
    if isinstance(exc, aws.ConnectTimeoutError | aws.EndpointConnectionError):
        return Failed("no connection", billed=False)
    if isinstance(exc, aws.ReadTimeoutError):
        return Failed("no answer in time")
    if isinstance(exc, aws.HTTPClientError):
        return Failed(f"connection lost ({type(exc).__name__})")
    if isinstance(exc, aws.BotoCoreError):
        if "Credential" in type(exc).__name__ or "Token" in type(exc).__name__:
            return Fatal(f"no credentials: {type(exc).__name__}", hint="log in again", billed=False)
        return Failed(f"Amazon's package raised {type(exc).__name__}")
    # What cannot be parsed as an answer is no answer.
    return Failed(f"an answer that cannot be read ({type(exc).__name__})")


def of_code(code: str, status: int, message: str = "") -> CallError:
    """Translate a code of Amazon's.

    >>> of_code("ThrottlingException", 400)
    Refused('ThrottlingException')
    """
    if code in THROTTLED or status == 429:
        return Refused(code or "HTTP 429")
    if code in NO_ENTRY:
        return Fatal(code, hint=NO_ENTRY[code], billed=False)
    if code == "AccessDeniedException" or status in (401, 403):
        hint = "may this user do this? docs/services names the permissions"
        return Fatal(code or f"HTTP {status}", hint=hint, unless_answered=True, billed=False)
    if status == 503 or code in ("ServiceUnavailableException", "ServiceUnavailable"):
        return Failed(code or "HTTP 503", overloaded=True)
    if status >= 500 or code in (
        "InternalServerException",
        "InternalFailure",
        "ModelTimeoutException",
    ):
        return Failed(code or f"HTTP {status}")
    if status == 408:
        return Failed("HTTP 408")
    return Rejected(code or f"HTTP {status}", said=" ".join(message.split())[:200], billed=False)
