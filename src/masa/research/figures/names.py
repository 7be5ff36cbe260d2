"""Names of APIs, data sets and cases as charts write them."""

NAMES = {"ibm": "IBM", "facepp": "Face++", "ferplus": "FER+", "command": "CMD"}
"""Names that are not just capitalised."""


def case_name(case: str) -> str:
    """Write a case: its API and its data set.

    >>> case_name("amazon yelp"), case_name("ibm digit")
    ('Amazon, YELP', 'IBM, DIGIT')
    """
    api, _, data = case.partition(" ")
    return f"{api_name(api)}, {data_name(data)}"


def api_name(api: str) -> str:
    """Write the name of an API as its vendor does."""
    return NAMES.get(api, api.capitalize())


def data_name(data: str) -> str:
    """Write the name of a data set as the paper does."""
    return NAMES.get(data, data.upper())
