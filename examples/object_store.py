"""An S3 store in memory for the examples, tests and benchmarks: moto, from PyPI."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

from examples.broker import free_port, until_open

MISSING = "there is no S3 server; pip install 'moto[s3]' flask flask-cors brings one"

ACCESS_KEY, SECRET_KEY = "ADAPTKNOWNACCESSKEY0", "adapt/known/secret/of/the/tests"
"""Credentials, which moto does not check."""


def is_there() -> bool:
    """Whether a server can be started."""
    return all(map(find_spec, ("moto", "flask", "flask_cors")))


@dataclass(frozen=True, slots=True)
class Store:
    """A running server."""

    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def environment(self) -> dict[str, str]:
        """The standard variables that lead to it."""
        return reached_at(self.port)

    def create(self, bucket: str) -> None:
        """Create a bucket."""
        self.send("PUT", bucket)

    def send(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Send a request as another client, such as PUT or DELETE of an object; gives the answer."""
        place = f"http://127.0.0.1:{self.port}/{path}"
        asked = urllib.request.Request(place, body, method=method, headers=_SIGNED)
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return bytes(answer.read())


_SIGNED = {
    "Authorization": f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20260101/us-east-1/s3/aws4_request",
    "Content-Type": "application/octet-stream",
}
"""What tells moto that a request is for S3, in this region."""


def reached_at(port: int) -> dict[str, str]:
    """Variables that lead to a store at a port of this machine."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",  # nothing asks the network who this machine is
    }


@contextmanager
def running(*buckets: str) -> Iterator[Store]:
    """A store with empty buckets, which ends with the block."""
    port = free_port()
    server = f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"
    process = subprocess.Popen([sys.executable, "-c", server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_open(port, process)
        store = Store(port, process)
        for bucket in buckets:
            store.create(bucket)
        yield store
    finally:
        process.kill()
        process.wait(30)
