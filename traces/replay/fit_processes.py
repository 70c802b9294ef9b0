"""Nodes of D-FIT as processes of their own, reached over sockets."""

import secrets
import subprocess
import sys
import weakref
from collections.abc import Callable, Generator
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.correspondent import Correspondent
from adapt.core.fit.distributed.encoding import decoded, encoded
from adapt.core.fit.distributed.group_peer import GroupDeployment, GroupPeer, Question
from adapt.core.fit.distributed.mailbox import Channel, Overdue, Packet
from adapt.core.fit.distributed.messages import Sheet
from adapt.core.fit.distributed.node_table import NodeTable
from adapt.core.fit.distributed.peer import Deployment, Peer
from adapt.core.fit.distributed.starting import Here
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.planner import NO_PLAN
from adapt.core.values import size as size_text

_LOOPBACK = "127.0.0.1"


class _Remote(Correspondent):
    """A node in a process of its own.

    The process ends with its socket. Once it is gone, it keeps nothing and sends nothing.

    Attributes:
        calls: Requests to it, each with an answer.
        size: Bytes of both.
    """

    def __init__(self, deployment: Deployment | GroupDeployment, run: int) -> None:
        self._first = [deployment, run]
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
    def gone(self) -> bool:
        return self._gone

    def close(self) -> None:
        self._end()

    def start(self) -> list[Packet]:
        return self._packets("start")

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

    def _packets(self, name: str, *given: object) -> list[Packet]:
        return list(self._ask(name, [], *given))

    def _ask(self, name: str, otherwise: object, *given: object) -> Any:
        """Call a method of the `Peer`; returns `otherwise` if the process has ended."""
        if self._gone:
            return otherwise
        try:
            if self._socket is None:
                self._socket = self._connected()
                self._exchanged(self._socket, self._first)
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


class RemotePeer(_Remote, Peer):
    """A `Peer` in a process of its own."""

    def __init__(self, deployment: Deployment, run: int) -> None:
        super().__init__(deployment, run)
        self.deployment = deployment

    @property
    def state(self) -> NodeTable:
        state = self._ask("state", NodeTable())
        assert isinstance(state, NodeTable)
        return state

    @property
    def too_large(self) -> bool:
        return self._too_large

    def deploy(self, deployment: Deployment) -> list[Packet]:
        self.deployment = deployment
        return self._packets("deploy", deployment)

    def plan(self, arriving: Floats, elsewhere: Floats | None = None) -> tuple[Floats, Indices]:
        points, arcs = len(arriving), len(self.deployment.part.arcs)
        nothing = (np.zeros((points, arcs)), np.full(points, NO_PLAN, np.int64))
        kept, ids = self._ask("plan", nothing, arriving, elsewhere)
        return kept, ids

    def resume(self, state: NodeTable) -> list[tuple[Channel, Sheet]]:
        return list(self._ask("resume", [], state))

    def assume(self, channel: Channel, sheet: Sheet) -> None:
        self._ask("assume", None, channel, sheet)


class RemoteGroup(_Remote, GroupPeer):
    """A `GroupPeer` in a process of its own."""

    def __init__(self, deployment: GroupDeployment, run: int) -> None:
        super().__init__(deployment, run)
        self.deployment = deployment

    def deploy(self, deployment: GroupDeployment) -> list[Packet]:
        self.deployment = deployment
        return self._packets("deploy", deployment)

    def cuts(self) -> Floats:
        return np.asarray(self._ask("cuts", np.zeros((0, 1 + len(self.deployment.group.dimensions)))))

    def fits(self, arriving: Floats, passing: Floats) -> NDArray[np.bool_]:
        return np.asarray(self._ask("fits", np.zeros(len(arriving), np.bool_), arriving, passing))

    def shares(self, arriving: Floats, passing: Floats, asks: bool) -> Generator[Question, bool, Floats]:
        nothing = np.zeros(len(self.deployment.group.drop_arcs))
        return np.asarray((yield from self._heard("shares", nothing, arriving, passing, asks)))

    def answer(self, question: Question, arriving: Floats, passing: Floats) -> Generator[Question, bool, bool]:
        return bool((yield from self._heard("answer", False, question, arriving, passing)))

    def tighten(self, arriving: Floats, passing: Floats) -> list[Packet]:
        return self._packets("tighten", arriving, passing)

    def sent(self) -> list[Packet]:
        return self._packets("sent")

    def elsewhere(self) -> Floats:
        return np.asarray(self._ask("elsewhere", np.zeros(len(self.deployment.places.passing))))

    def _heard(self, name: str, otherwise: object, *given: object) -> Generator[Question, bool, Any]:
        said = self._ask(name, otherwise, *given)
        while isinstance(said, Question):
            said = self._ask("heard", otherwise, (yield said))
        return said


class Processes(Here):
    """Starts nodes as processes, and ends them all.

    Attributes:
        nodes: All that were started.
    """

    apart = True

    def __init__(self) -> None:
        self.nodes: list[RemotePeer | RemoteGroup] = []

    def peer(self, deployment: Deployment, run: int) -> Peer:
        """A node of D-FIT."""
        peer = RemotePeer(deployment, run)
        self.nodes.append(peer)
        return peer

    def group(self, deployment: GroupDeployment, run: int) -> GroupPeer:
        """A group of D-FIT with cuts."""
        group = RemoteGroup(deployment, run)
        self.nodes.append(group)
        return group

    def __enter__(self) -> "Processes":
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, and wait for them."""
        for peer in self.nodes:
            peer.close()

    @property
    def sentence(self) -> str:
        """How many processes there were, and what they exchanged with the driver."""
        calls, size = sum(peer.calls for peer in self.nodes), sum(peer.size for peer in self.nodes)
        return f"nodes ran in {len(self.nodes)} processes: {2 * calls:,} messages over sockets, {size_text(size)}"


def serve() -> None:
    """Run a node until its socket is closed.

    The key comes by stdin, the port goes to stdout.
    """
    key = bytes.fromhex(sys.stdin.readline())
    with Listener((_LOOPBACK, 0), authkey=key) as listener:
        print(listener.address[1], flush=True)
        with listener.accept() as socket:
            deployment, run = decoded(socket.recv_bytes())
            server = _Server(
                Peer(deployment, run) if isinstance(deployment, Deployment) else GroupPeer(deployment, run)
            )
            socket.send_bytes(encoded(None))
            with suppress(EOFError, OSError):  # the driver has closed the socket, or has ended
                while True:
                    answer = server.said(*decoded(socket.recv_bytes()))
                    socket.send_bytes(encoded([answer, server.peer.pending(), server.too_large]))


class _Server:
    def __init__(self, peer: Peer | GroupPeer) -> None:
        self.peer = peer
        self._asking: list[Generator[Question, bool, Any]] = []

    @property
    def too_large(self) -> bool:
        return isinstance(self.peer, Peer) and self.peer.too_large

    def said(self, name: str, *given: Any) -> object:
        """The result of a method; questions on the way to it are results too, and `heard` brings their answers."""
        try:
            if name == "state":
                return getattr(self.peer, name)
            if name == "heard":
                return self._next(lambda asking: asking.send(*given))
            result = getattr(self.peer, name)(*given)
            if isinstance(result, Generator):
                self._asking.append(result)
                return self._next(next)
            return result
        except UsageError as error:
            return error

    def _next(self, advance: Callable[[Generator[Question, bool, Any]], object]) -> object:
        try:
            return advance(self._asking[-1])
        except StopIteration as decided:
            self._asking.pop()
            return decided.value


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
