"""Java of Spark, started while Python still loads.

It boots while the program is imported and the source is looked at.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import sleep

_LONGEST_START_S = 60.0
_LOOK_S = 0.01

GATEWAY = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
"""Environment variables by which PySpark finds a Java process that runs."""


@dataclass(frozen=True, slots=True)
class EarlyJava:
    """A Java process that waits for its Python.

    Attributes:
        process: It ends when its standard input does, so at the latest with this process.
        connection: The file in which it writes how to connect.
    """

    process: "subprocess.Popen[bytes]"
    connection: Path

    @classmethod
    def start(cls, settings: Mapping[str, str], console: int) -> "EarlyJava | None":
        """Start Java as PySpark would; None where it could not.

        Args:
            settings: Settings of the session.
            console: The file that gets what Java prints.
        """
        found = find_spec("pyspark")
        if found is None or found.origin is None or set(os.environ) & {*GATEWAY, "SPARK_HOME", "PYSPARK_SUBMIT_ARGS"}:
            return None
        connection = Path(tempfile.mkdtemp(prefix="adapt-java-")) / "connection"
        words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        process = subprocess.Popen(
            [Path(found.origin).parent / "bin" / "spark-submit", *words, "pyspark-shell"],
            stdin=subprocess.PIPE,
            stdout=console,
            stderr=console,
            env={**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection)},
            preexec_fn=_ignore_interrupts,
        )
        return cls(process, connection)

    def drop(self) -> None:
        """Let it end, unused."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._forget()

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Let PySpark connect to it in the body.

        If it has ended, PySpark starts another.
        """
        waits = int(_LONGEST_START_S / _LOOK_S)
        while not self.connection.exists() and self.process.poll() is None and (waits := waits - 1):
            sleep(_LOOK_S)
        if not self.connection.exists():
            self.drop()
            yield
            return
        data = self.connection.read_bytes()  # four bytes, then the length of the secret in four, then the secret
        self._forget()
        os.environ.update(zip(GATEWAY, (str(int.from_bytes(data[:4])), data[8:].decode()), strict=True))
        try:
            yield
        finally:
            for name in GATEWAY:
                del os.environ[name]

    def _forget(self) -> None:
        self.connection.unlink(missing_ok=True)
        if self.connection.parent.exists():
            self.connection.parent.rmdir()


def _ignore_interrupts() -> None:
    """Ctrl-C is Python's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
