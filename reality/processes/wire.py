"""Connections on loopback, and the frames that processes exchange."""

import hmac
import json
import socket
from multiprocessing.connection import Connection
from struct import Struct
from typing import Any

LOOPBACK = "127.0.0.1"

LATENCY = Struct("<d")
"""A request to the loopback service: the latency of its answer in seconds."""

DRIVER, SERVICE = -1, -2
"""Seats of the other processes."""

ROWS, REPORT, STATE, STATES, NOTE = (bytes([code]) for code in range(5))
"""Kind of a frame, its first byte: rows for a worker; processed rows; the state of a partition; the state of all keys;
anything else, as JSON."""


ANSWER, INSTALLED = "answer", "installed"
"""Kind of an event at a worker that the driver must know."""


def listening() -> socket.socket:
    """A server on a free port."""
    return socket.create_server((LOOPBACK, 0), backlog=256)


def port_of(server: socket.socket) -> int:
    """The port of a server."""
    return int(server.getsockname()[1])


def connected(port: int, key: bytes, sender: int, receiver: int) -> Connection:
    """A connection to a process, which need not have accepted it yet.

    Raises:
        OSError: The process has ended.
    """
    connection = _connection(socket.create_connection((LOOPBACK, port)))
    connection.send_bytes(f"{sender} ".encode() + _proof(key, sender, receiver))
    return connection


def accepted(server: socket.socket, key: bytes, receiver: int) -> tuple[int, Connection] | None:
    """The next connection and its sender; None without the key."""
    connection = _connection(server.accept()[0])
    try:
        sender, _, proof = connection.recv_bytes(256).partition(b" ")
        if hmac.compare_digest(proof, _proof(key, int(sender), receiver)):
            return int(sender), connection
    except (EOFError, OSError, ValueError):
        pass
    connection.close()
    return None


def note(**fields: Any) -> bytes:
    """A frame of JSON data."""
    return NOTE + json.dumps(fields, separators=(",", ":"), default=str).encode()


def _proof(key: bytes, sender: int, receiver: int) -> bytes:
    return hmac.digest(key, f"{sender}>{receiver}".encode(), "sha256")


def _connection(connected: socket.socket) -> Connection:
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Connection(connected.detach())
