"""Ask a client as a run does."""

import asyncio

import masa
from masa.clients import Client, Context
from masa.doubles.made_up import reviews
from server import KEY

LABELS = ("neg", "neu", "pos")
TEXTS = [text for text, _ in reviews(12)]


def context(**more: str) -> Context:
    """What a client may know, with these variables besides."""
    return Context(LABELS, ("text",), {"K": KEY, "OPENAI_API_KEY": KEY, **more})


def item(text: str) -> masa.Item:
    return masa.Item(0, {"text": text})


def ask(client: Client, *texts: str) -> list[masa.Reply]:
    async def together() -> list[masa.Reply]:
        try:
            return list(await asyncio.gather(*(client.ask(item(text)) for text in texts)))
        finally:
            await client.close()

    return asyncio.run(together())
