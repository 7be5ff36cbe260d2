"""The part of a new masa.toml that describes the API: `[api]`, by client."""

import json
from collections.abc import Sequence

COMMENT_AT = 40
"""The column at which comments begin."""

FILES = """\
# outside = true                        # files outside the data's folder, and URLs, may be read
# nothing = "nothing"                   # the prediction where nothing was recognised"""

SPEECH = f"""\
# labels = {{ "for" = "four" }}           # what is heard = what the data calls it
{FILES}
# longest = 60                          # seconds that a sound may last
# billing_seconds = 15                  # sounds are billed in steps of so many seconds"""

PROMPT = """\
# system = "You are a careful annotator."
# prompt = "Classify ... {labels} ... {input}"
# structured = true                     # hold the model to a JSON schema with the labels
# labels = { good = "positive" }        # what the model may say = what the data calls it
# temperature = 0.0
# max_tokens = 64                       # models that think need more: thinking counts"""

TOKENS = """\
{input:<40}# money per million tokens ({date}): check them,
# output_price = {output:<23}# and give others here where yours are not these
# cached_price = {cached}"""

WRITTEN = """
# cache_write_price = {written}"""

NO_TOKENS = """\
# input_price = 0.15                    # money per million tokens, for a budget in money: then
# output_price = 0.60                   # leave out price
price = "queries-only\""""

DRAFTS = {
    "http": """\
client = "http"                         # any API over HTTP; masa clients lists more
url = "https://api.example.com/classify"
# method = "POST"
# ${NAME} is taken from the environment if `secrets` above names it; write no secret here
headers = { Authorization = "Bearer ${API_KEY}" }
body = { text = "{input}" }             # {column} is an input column, {input} the only one
# body = { image = "{input:base64}" }   # a file that the column names
# multipart = { file = "{input:file}" } # or: form = {...}, raw = "{input:file}"
label = "result.label"                  # the path to the label: a.b[0].c, or to an object of scores
# confidence = "result.score"
# version = "header:X-Model-Version"    # or a path: what the provider calls its model
# labels = { POSITIVE = "pos" }         # what the API calls a label = what the data calls it
# missing = "none"                      # the label where the answer has none
price = "queries-only"                  # money per call, such as 0.0015, for a budget in money too
# timeout = 30""",
    "python": """\
client = <client>
price = "queries-only"                  # money per call, such as 0.0015, for a budget in money too
# batch = 1                             # more: the function is given a list and gives a list
# timeout = 60""",
    "replay": """\
client = <client>                       # recorded predictions: nothing is asked or paid""",
    "amazon-comprehend": """\
client = "amazon-comprehend"            # credentials: wherever Amazon's package finds them
region = "us-east-1"
language = "en"
<labels>
# known_labels_only = true              # data without neutral: the likelier of the labels it has
# together = false                      # one text in a call, not up to 25
<price>""",
    "google-language": """\
client = "google-language"              # credentials: gcloud auth application-default login
# key = "${GOOGLE_API_KEY}"             # or an API key; name it in `secrets` above
# language = "en"                       # without it Google finds out
<labels>
# neutral = 0.25                        # scores of at most this size are neutral
<price>""",
    "baidu-nlp": """\
client = "baidu-nlp"                    # BAIDU_API_KEY and BAIDU_SECRET_KEY are sent to Baidu
<labels>
# known_labels_only = true              # data without neutral: the likelier of the labels it has
<price>""",
    "google-vision": f"""\
client = "google-vision"                # credentials: gcloud auth application-default login
# key = "${{GOOGLE_API_KEY}}"             # or an API key; name it in `secrets` above
<labels>
# together = 16                         # images in a call
{FILES}
<price>""",
    "microsoft-face": f"""\
# Microsoft withdrew the recognition of emotions on 30 June 2023: its own endpoints refuse it.
client = "microsoft-face"
endpoint = "https://NAME.cognitiveservices.azure.com"
# key = "${{AZURE_FACE_KEY}}"
<labels>
{FILES}
<price>""",
    "facepp": f"""\
client = "facepp"                       # FACEPP_API_KEY and FACEPP_API_SECRET are sent to Face++
# base_url = "https://api-cn.faceplusplus.com"
<labels>
{FILES}
<price>""",
    "google-speech": f"""\
client = "google-speech"                # credentials: gcloud auth application-default login
project = "PROJECT"
# location = "global"
# model = "latest_short"
# language = "en-US"
# key = "${{GOOGLE_API_KEY}}"             # or an API key; name it in `secrets` above
{SPEECH}
<price>""",
    "microsoft-speech": f"""\
client = "microsoft-speech"             # AZURE_SPEECH_KEY is sent to Microsoft
region = "westeurope"
# language = "en-US"
{SPEECH}
<price>""",
    "ibm-speech": f"""\
client = "ibm-speech"                   # SPEECH_TO_TEXT_APIKEY and SPEECH_TO_TEXT_URL are needed
# model = "en-US_Multimedia"
{SPEECH}
<price>""",
    "openai": f"""\
client = "openai"                       # OPENAI_API_KEY is sent to OpenAI
model = "gpt-4o-mini"
# api = "responses"                     # in place of chat completions
# base_url = "https://api.openai.com/v1"
# key = "${{OPENAI_API_KEY}}"             # another base_url needs it in `secrets` above
{PROMPT}
# logprobs = true                       # confidences, where the endpoint gives log-probabilities
<tokens>""",
    "anthropic": f"""\
client = "anthropic"                    # ANTHROPIC_API_KEY is sent to Anthropic
model = "claude-haiku-4-5"
{PROMPT}
<tokens>""",
    "gemini": f"""\
client = "gemini"                       # GEMINI_API_KEY is sent to Google
model = "gemini-2.5-flash"
thinking_budget = 0                     # tokens of thinking at most, where the model allows it
{PROMPT}
# logprobs = true                       # confidences, where the model gives log-probabilities
<tokens>""",
    "azure-openai": f"""\
client = "azure-openai"
endpoint = "https://NAME.openai.azure.com"
model = "DEPLOYMENT"                    # the name of the deployment
# api_version = "2024-10-21"
{PROMPT}
# logprobs = true
<tokens>""",
    "bedrock": f"""\
client = "bedrock"                      # credentials: wherever Amazon's package finds them
region = "us-east-1"
model = "amazon.nova-lite-v1:0"         # or another, or the id of an inference profile
{PROMPT}
<tokens>""",
}

MODELS = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-flash",
    "bedrock": "amazon.nova-lite-v1:0",
}
"""The models of the drafts whose prices are in the table."""


def api_draft(api: str, labels: Sequence[str] = ()) -> str:
    """Write `[api]` for a client; `labels` are those of the data."""
    kind = api.partition(":")[0]
    text = DRAFTS.get(kind, "client = <client>")
    text = text.replace("<client>", quoted(api))
    text = text.replace("<labels>", _labels(kind, labels))
    return text.replace("<price>", _price(kind)).replace("<tokens>", _tokens(kind))


def above(api: str) -> tuple[str, ...]:
    """Write the lines above the first table: the variables that may be sent."""
    from masa.clients.catalogue import CATALOGUE

    kind = api.partition(":")[0]
    entry = CATALOGUE.get(kind)
    names: Sequence[str] = ()
    if kind == "http":
        names = ("API_KEY",)
    elif entry is not None and entry.declared:
        names = entry.variables
    if not names:
        return ()
    declared = f"secrets = {json.dumps(list(names))}"
    return (f"{declared:<{COMMENT_AT}}# environment variables that may be sent to it", "")


def _labels(kind: str, labels: Sequence[str]) -> str:
    """Write how labels are mapped: to be filled in where none of them fits."""
    from masa.clients.catalogue import CATALOGUE
    from masa.clients.services.service import written_as

    entry = CATALOGUE.get(kind)
    if entry is None or not entry.says:
        return ""
    pairs = []
    for name in entry.says:
        fit = written_as(name, labels)
        pairs.append((name, fit[0] if fit else name))
    written = ", ".join(f"{name} = {quoted(label)}" for name, label in pairs)
    comment = "# what it says = what the data calls it"
    if labels and not {label for _, label in pairs} & set(labels):
        some = ", ".join(map(repr, labels[:6]))
        return f"labels = {{ {written} }}\n# ^ write the labels of the data on the right: {some}"
    return f"{comment}:\n# labels = {{ {written} }}"


def _price(kind: str) -> str:
    """Write what the table of prices knows."""
    from masa.clients.prices import TARIFFS

    tariff = TARIFFS.get(kind)
    if tariff is None or tariff.price is None:
        return 'price = "queries-only"                  # masa knows no price: money per call'
    return (
        f"# price = {float(tariff.price):<30g}# {tariff.currency} per {tariff.unit} "
        f"({tariff.date}): check it"
    )


def _tokens(kind: str) -> str:
    """Write what tokens cost, or that only queries are counted: never both."""
    from masa.clients.prices import LOOKED_UP, model_prices

    known = model_prices(MODELS.get(kind, ""))
    if known is None:
        return NO_TOKENS
    cached = known.input if known.cached is None else known.cached
    text = TOKENS.format(
        input=f"# input_price = {float(known.input)}",
        output=float(known.output),
        cached=float(cached),
        date=LOOKED_UP,
    )
    return text if known.written is None else text + WRITTEN.format(written=float(known.written))


def quoted(text: str | None) -> str:
    r"""Write a text as TOML does.

    >>> print(quoted('a "b"'))
    "a \"b\""
    """
    whole = (text or "").encode(errors="replace").decode()  # Half of a character is no text.
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
