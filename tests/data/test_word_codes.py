"""Words as codes, compiled and not: the same for every text."""

import random

import numpy as np
import pytest

from masa.data import features
from masa.data.dataset import Dataset
from masa.data.features import Words

PLAIN = "abcXYZ019_'' ,.-\n\t!"
ANY = PLAIN + "\u00e9\u597d\u0130\u00df\u2019\x00\x7f"


def made_up(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    lengths = (0, 1, 5, 40, 400, 5000)
    return [
        "".join(rng.choices(rng.choice((PLAIN, ANY)), k=rng.choice(lengths))) for _ in range(count)
    ]


@pytest.mark.parametrize("at_once", [7, 65_536])
def test_compiled_code_gives_the_codes_that_python_gives(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "MANY", 1)
    monkeypatch.setattr(features, "AT_ONCE", at_once)
    one, other = made_up(600, 1), made_up(600, 2)
    for inputs in ({"a": one}, {"a": one, "b": other}, {"a": [""] * 600}):
        data = Dataset.of(["x"] * 600, inputs=inputs)
        for some in (data, data.take(np.arange(1, 600, 7))):
            found, expected = Words.of_data(some), Words.of(item.text for item in some.items())
            assert np.array_equal(found.start, expected.start)
            assert np.array_equal(found.codes, expected.codes)
            assert found.codes.dtype == expected.codes.dtype
