"""Test doubles: servers on this machine that speak like the named services.

Each speaks the wire format that its vendor documents: answers, throttling, wrong keys, invalid
input, failures of a part of a batch. Behind them answer real models. They are not the services:
what was never seen from the real ones is said on the page of the service in `docs/services`. The
tests and `masa demo --service NAME` use them; nothing here knows clients.
"""

from masa.doubles.catalogue import DOUBLES, make

__all__ = ["DOUBLES", "make"]
