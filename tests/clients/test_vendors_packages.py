"""The vendors' own packages against the doubles of services that masa asks over plain HTTP.

They show that the doubles speak as the vendors' packages expect.
"""

import warnings
from typing import Any

import pytest

from doubled import Case, case
from masa.doubles.server import KEY, SECRET

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import aip
    import anthropic
    import openai
    from azure.cognitiveservices.vision.face import FaceClient
    from google import genai
    from msrest.authentication import CognitiveServicesCredentials

TEXT = "Label it.\n\nText:\nIt was a wonderful surprise"


def label(found: Case, text: str = TEXT) -> str:
    return found.truth(text.rsplit("Text:\n", 1)[-1], updated=False)


def test_openais_package_reads_both_apis_and_the_errors() -> None:
    with case("openai", count=60) as found:
        with openai.OpenAI(
            api_key=KEY, base_url=f"{found.double.url}/v1", max_retries=0
        ) as package:
            chat = package.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": TEXT}], logprobs=True
            )
            assert chat.choices[0].message.content == label(found)
            assert chat.usage is not None
            assert chat.usage.prompt_tokens > 5
            answer = package.responses.create(model="tiny", input=TEXT)
            assert answer.output_text == label(found)
            assert answer.usage is not None
            assert answer.usage.input_tokens_details.cached_tokens > 0
            found.double.faults, found.double.kinds = 1.0, ("throttled",)
            with pytest.raises(openai.RateLimitError):
                package.responses.create(model="tiny", input=TEXT)
        with (
            openai.OpenAI(
                api_key="wrong", base_url=f"{found.double.url}/v1", max_retries=0
            ) as stranger,
            pytest.raises(openai.AuthenticationError),
        ):
            stranger.responses.create(model="tiny", input=TEXT)


def test_openais_package_for_azure_reads_deployments() -> None:
    with (
        case("azure-openai", count=60) as found,
        openai.AzureOpenAI(
            api_key=KEY,
            azure_endpoint=found.double.url,
            api_version="2024-10-21",
            max_retries=0,
        ) as package,
    ):
        chat = package.chat.completions.create(
            model="mine", messages=[{"role": "user", "content": TEXT}]
        )
        assert chat.choices[0].message.content == label(found)


def test_anthropics_package_reads_messages_and_errors() -> None:
    with (
        case("anthropic", count=60) as found,
        anthropic.Anthropic(api_key=KEY, base_url=found.double.url, max_retries=0) as package,
    ):
        given: Any = {
            "model": "tiny",
            "max_tokens": 64,
            "messages": [{"role": "user", "content": TEXT}],
        }
        message = package.messages.create(**given)
        block = message.content[0]
        assert block.type == "text"
        assert block.text == label(found)
        assert message.usage.cache_creation_input_tokens
        found.double.faults, found.double.kinds = 1.0, ("overloaded",)
        with pytest.raises(anthropic.APIStatusError) as caught:
            package.messages.create(**given)
        assert caught.value.status_code == 529


@pytest.mark.filterwarnings("ignore")
def test_googles_package_for_gemini_reads_content_and_errors() -> None:
    with case("gemini", count=60) as found:
        package = genai.Client(
            api_key=KEY, http_options=genai.types.HttpOptions(base_url=found.double.url)
        )
        answer = package.models.generate_content(model="tiny", contents=TEXT)
        assert answer.text == label(found)
        assert answer.model_version == "tiny-001"
        found.double.faults, found.double.kinds = 1.0, ("throttled",)
        with pytest.raises(genai.errors.ClientError) as caught:
            package.models.generate_content(model="tiny", contents=TEXT)
        assert caught.value.code == 429
        package.close()


@pytest.mark.filterwarnings("ignore")
def test_baidus_package_reads_answers_in_its_own_encoding() -> None:
    with case("baidu-nlp", count=60) as found:
        package = aip.AipNlp("1", KEY, SECRET)
        package._AipBase__accessTokenUrl = f"{found.double.url}/oauth/2.0/token"
        url = f"{found.double.url}/rpc/2.0/nlp/v1/sentiment_classify"
        package._AipNlp__sentimentClassifyUrl = url
        answer = package.sentimentClassify("质量非常好")
        assert answer["items"][0]["sentiment"] == 2
        assert found.double.calls[0].inputs == ("质量非常好",)
        found.double.faults, found.double.kinds = 1.0, ("throttled",)
        assert package.sentimentClassify("质量非常好")["error_code"] == 18


@pytest.mark.filterwarnings("ignore")
def test_microsofts_package_for_faces_reads_emotions() -> None:
    with case("microsoft-face", count=60) as found:
        client: Any = FaceClient
        package = client(found.double.url, CognitiveServicesCredentials(KEY))
        name, _ = found.made[0]
        with (found.folder / name).open("rb") as image:
            faces = package.face.detect_with_stream(image, return_face_attributes=["emotion"])
        emotions = faces[0].face_attributes.emotion.as_dict()
        assert max(emotions, key=lambda one: emotions[one]) == found.truth(name, updated=False)
        package.close()
