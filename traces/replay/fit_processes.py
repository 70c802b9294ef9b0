"""Nodes of D-FIT as processes of their own, reached over sockets."""

import secrets
import subprocess
import sys
import weakref
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.encoding import decoded, encoded
from adapt.core.fit.distributed.mailbox import Channel, Overdue, Packet
from adapt.core.fit.distributed.messages import Sheet
from adapt.core.fit.distributed.node_table import NodeTable
from adapt.core.fit.distributed.peer import Deployment, Peer
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.planner import NO_PLAN
from adapt.core.values import size as size_text

_LOOPBACK = "127.0.0.1"


class RemotePeer(Peer):
    """A `Peer` in a process of its own.

    The process ends with its socket. Once it is gone, it keeps nothing and sends nothing.

    Attributes:
        calls: Requests to it, each with an answer.
        size: Bytes of both.
    """

    def __init__(self, deployment: Deployment, run: int) -> None:
        self.deployment, self._run = deployment, run
        self._gone, self._too_large, self.calls, self.size = False, False, 0, 0
        self._pending: dict[Channel, Sheet | None] = {}
        self._key = secrets.token_bytes(32)
        self._socket: Connection | None = None
        command = [sys.executable, "-m", __name__]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._end = weakref.finalize(self, _end, self.process)
        assert self.process.stdin is not None
        self.process.stdin.write(self._key.hex().encode() + b"\n")
        self.process.stdin.flush()

    @property
    def state(self) -> NodeTable:
        state = self._ask("state", NodeTable())
        assert isinstance(state, NodeTable)
        return state

    @property
    def too_large(self) -> bool:
        return self._too_large

    @property
    def gone(self) -> bool:
        return self._gone

    def close(self) -> None:
        self._end()

    def start(self) -> list[Packet]:
        return self._packets("start")

    def deploy(self, deployment: Deployment) -> list[Packet]:
        self.deployment = deployment
        return self._packets("deploy", deployment)

    def take(self, event: Packet | Overdue) -> list[Packet]:
        return self._packets("take", event)

    def observe(self, arriving: Floats, watcher: int) -> list[Packet]:
        return self._packets("observe", arriving, watcher)

    def pending(self) -> dict[Channel, Sheet | None]:
        return self._pending

    def received(self, channel: Channel) -> Sheet | None:
        sheet = self._ask("received", None, channel)
        assert sheet is None or isinstance(sheet, Sheet)
        return sheet

    def plan(self, arriving: Floats, elsewhere: Floats | None = None) -> tuple[Floats, Indices]:
        points, arcs = len(arriving), len(self.deployment.part.arcs)
        nothing = (np.zeros((points, arcs)), np.full(points, NO_PLAN, np.int64))
        kept, ids = self._ask("plan", nothing, arriving, elsewhere)
        return kept, ids

    def resume(self, state: NodeTable) -> list[tuple[Channel, Sheet]]:
        return list(self._ask("resume", [], state))

    def assume(self, channel: Channel, sheet: Sheet) -> None:
        self._ask("assume", None, channel, sheet)

    def _packets(self, name: str, *given: object) -> list[Packet]:
        return list(self._ask(name, [], *given))

    def _ask(self, name: str, otherwise: object, *given: object) -> Any:
        """Call a method of the `Peer`; returns `otherwise` if the process has ended."""
        if self._gone:
            return otherwise
        try:
            if self._socket is None:
                self._socket = self._connected()
                self._exchanged(self._socket, [self.deployment, self._run])
            answer, self._pending, self._too_large = self._exchanged(self._socket, [name, *given])
        except (EOFError, OSError):
            self._gone, self._pending, self._too_large = True, {}, False
            self._end()
            return otherwise
        if isinstance(answer, UsageError):
            raise answer
        return answer

    def _connected(self) -> Connection:
        assert self.process.stdout is not None
        port = self.process.stdout.readline()
        if not port:
            raise EOFError
        return Client((_LOOPBACK, int(port)), authkey=self._key)

    def _exchanged(self, socket: Connection, request: object) -> Any:
        sent = encoded(request)
        socket.send_bytes(sent)
        answer = socket.recv_bytes()
        self.calls += 1
        self.size += len(sent) + len(answer)
        return decoded(answer)


class Processes(list[RemotePeer]):
    """Starts nodes as processes, and ends them all."""

    def __call__(self, deployment: Deployment, run: int) -> Peer:
        """Start a node."""
        self.append(RemotePeer(deployment, run))
        return self[-1]

    def __enter__(self) -> "Processes":
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, and wait for them."""
        for peer in self:
            peer.close()

    @property
    def sentence(self) -> str:
        """How many processes there were, and what they exchanged with the driver."""
        nodes = len({peer.deployment.part.program.wiring.network.nodes[0].name for peer in self})
        calls, size = sum(peer.calls for peer in self), sum(peer.size for peer in self)
        said = f"{nodes} d-fit nodes ran in {len(self)} processes"
        return f"{said}: {2 * calls:,} messages over sockets, {size_text(size)}"


def serve() -> None:
    """Run a node until its socket is closed.

    The key comes by stdin, the port goes to stdout.
    """
    key = bytes.fromhex(sys.stdin.readline())
    with Listener((_LOOPBACK, 0), authkey=key) as listener:
        print(listener.address[1], flush=True)
        with listener.accept() as socket:
            peer = Peer(*decoded(socket.recv_bytes()))
            socket.send_bytes(encoded(None))
            while True:
                try:
                    request = decoded(socket.recv_bytes())
                except EOFError:
                    return
                socket.send_bytes(encoded([_answer(peer, *request), peer.pending(), peer.too_large]))


def _answer(peer: Peer, name: str, *given: Any) -> object:
    if name == "state":
        return peer.state
    try:
        return getattr(peer, name)(*given)
    except UsageError as error:
        return error


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and wait for it."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


if __name__ == "__main__":
    serve()
