"""Provide ports for servers of tests that do not take port 0."""

from __future__ import annotations

import random
import socket

_OUTGOING = 32_768
"""The system gives ports from here on to connections, and to servers that ask for any port."""


def free_port() -> int:
    """Return a free port of the loopback that the system gives to nobody until the server takes it."""
    while True:
        port = random.randrange(15_000, _OUTGOING)  # noqa: S311 - no secret
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
