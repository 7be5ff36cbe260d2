"""Connections to an API, each of which carries one answer at a time.

HTTP/1.1 does not say which request an answer belongs to: the next bytes on a connection are taken
for the answer to the last request. Bytes that nobody asked for, such as an answer that is sent
twice, would be taken for the answer about the next item. So a connection rests for a moment before
it is used again, and is closed if anything arrives on it while nobody waits.
"""

import asyncio
import functools
import logging
import select
import time
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection

log = logging.getLogger(__name__)

REST = 0.03
"""Seconds after an answer for which a connection is not used again. What is sent twice is sent at
once; meanwhile another connection serves."""

GOODBYE = (b"HTTP/1.1 408", b"HTTP/1.0 408")
"""What servers send before they close a connection that was idle for long: a harmless habit."""


class Connector(aiohttp.TCPConnector):
    """Connections that are kept for the next call, until one of them turns out to be mixed up."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        make: Any = functools.partial(OneAnswer, self._loop, self)
        self._factory = make
        self._mixed_up = False

    async def _get(self, key: "ConnectionKey", traces: Any) -> "Connection | None":
        """Give the connection that has rested longest, or None where a new one is to be made."""
        waiting = self._conns.get(key)
        if waiting and time.monotonic() - waiting[0][1] < REST:
            return None
        return await super()._get(key, traces)

    def stop_keeping(self) -> None:
        """Use every connection for one call only from now on, and close those that wait."""
        if self._mixed_up:
            return
        self._mixed_up = True
        log.warning(
            "the API sent an answer that nobody asked for: connections are not used again from now"
        )
        for waiting in list(self._conns.values()):
            for protocol, _ in list(waiting):
                protocol.close()

    def _release(
        self, key: "ConnectionKey", protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        """Take a connection back after a call."""
        if isinstance(protocol, OneAnswer):
            protocol.idle = True
            # Something is left behind the answer that was read.
            if protocol.holds_more:
                self.stop_keeping()
        super()._release(key, protocol, should_close=should_close or self._mixed_up)


class OneAnswer(ResponseHandler):
    """A connection that is closed when anything arrives on it while nobody waits for an answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connector: Connector) -> None:
        super().__init__(loop)
        self.idle = True
        """whether nobody waits for an answer"""
        self._connector = connector

    @property
    def holds_more(self) -> bool:
        """Whether it has received an answer, or a part of one, that nobody has read."""
        return bool(self._buffer or self._tail)

    def set_response_params(self, **options: Any) -> None:
        """Get ready for the answer to a request that is about to be sent."""
        self.idle = False
        super().set_response_params(**options)

    def data_received(self, data: bytes) -> None:
        """Read what arrived, or close where nobody waits for it."""
        if self.idle and data:
            self._nobody_asked(data)
            return
        super().data_received(data)
        # The end of an answer frees the connection while the rest of the bytes is still read.
        if self.idle and self.holds_more:
            self._nobody_asked(b"")

    def is_connected(self) -> bool:
        """Say whether it can be used; not if something has arrived that is yet to be read."""
        return super().is_connected() and not (self.idle and self._has_arrived())

    def _has_arrived(self) -> bool:
        """Ask the system whether bytes wait to be read, before the loop gets to know of them."""
        transport = self.transport
        sock = None if transport is None else transport.get_extra_info("socket")
        if sock is None or sock.fileno() < 0 or not hasattr(select, "poll"):
            return False
        waiting = select.poll()
        waiting.register(sock.fileno(), select.POLLIN)
        return bool(waiting.poll(0))

    def _nobody_asked(self, data: bytes) -> None:
        self.close()
        if not data.startswith(GOODBYE):
            self._connector.stop_keeping()
