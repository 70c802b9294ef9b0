"""How partitions move between sites while their tuples go on arriving, step by step.

Source: Flux, section 5.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from adapt.core.errors import BadInput
from adapt.core.stage.agenda import Action
from adapt.core.stage.memory import Spilling
from adapt.core.stage.moves import Move
from adapt.core.stage.partition_state import PartitionState, States
from adapt.core.stage.stage import Job, Stage
from adapt.core.stage.state_network import StateNetwork

STEPS = ("decided", "paused", "quiesced", "extracted", "received", "installed", "restarted")
"""What happens to a move, in this order."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A move and when each of its `STEPS` was done, in seconds; those that are yet to come are missing."""

    move: Move
    state_bytes: int
    times_s: dict[str, float] = field(default_factory=dict)


class Movement:
    """Carries out moves over a stage.

    1. The controller tells donor and receiver. 2. The donor asks all producers to pause the partition; each keeps its
    tuples from then on and acknowledges behind what it has sent. 3. The donor goes on. When it has read all
    acknowledgements, no tuple of the partition is in flight. 4. It takes the state out, and its state mover sends it,
    one partition after another. 5. The receiver puts it in and tells producers and controller. 6. The producers send
    to it. Every message takes as long as a packet.
    """

    def __init__(self, stage: Stage, spilling: Spilling | None = None) -> None:
        """A stage on which nothing moves yet, and what keeps its memory, if that is limited."""
        self._stage = stage
        self._spilling = spilling
        network = stage.settings.network
        self.network = StateNetwork(
            stage.agenda, lambda: stage.now_s, network.flow_bits_per_s, network.state_bits_per_s
        )
        self._states = States(stage.arrays)
        self._sizes = stage.settings.state_sizes()
        self._message_s = network.latency_s
        self.log: list[Moved] = []
        self.on_the_wire: dict[int, PartitionState] = {}
        self._moving: set[int] = set()
        self._donating: set[int] = set()

    @property
    def moving(self) -> int:
        """Moves that are not done."""
        return len(self._moving)

    def start(self, moves: Sequence[Move], done: Action) -> None:
        """Carry out moves at the same time; those of one donor one behind the other.

        Args:
            moves: What to move.
            done: What follows when the controller knows that all are done.

        Raises:
            BadInput: a partition moves already or twice, does not belong to its donor, or has nowhere to go.
        """
        self._check(moves)
        waiting = len(moves)
        by_donor: dict[int, list[Moved]] = {}
        for move in moves:
            moved = Moved(move, int(self._sizes[move.partition]) * self._stage.settings.costs.tuple_bytes)
            self._note(moved, "decided")
            self.log.append(moved)
            by_donor.setdefault(move.donor, []).append(moved)

        def one_done() -> None:
            nonlocal waiting
            waiting -= 1
            if waiting == 0:
                done()

        for donor, batch in by_donor.items():
            self._donating.add(donor)
            self._tell(donor, partial(self._ask_to_pause, donor, batch, one_done))

    def _check(self, moves: Sequence[Move]) -> None:
        owners = self._stage.arrays["partition"]["owner"]
        if not moves:
            raise BadInput("no move is asked for")
        seen: set[int] = set()
        for move in moves:
            if move.partition in self._moving | seen:
                raise BadInput(f"partition {move.partition} moves already; wait until it has arrived")
            if owners[move.partition] != move.donor or not 0 <= move.receiver < self._stage.settings.sites:
                raise BadInput(
                    f"partition {move.partition} is to move from site {move.donor} to {move.receiver}, but it belongs "
                    f"to site {owners[move.partition]} of {self._stage.settings.sites}"
                )
            if move.donor == move.receiver or move.donor in self._donating:
                raise BadInput(f"site {move.donor} cannot give partition {move.partition} to itself, or while it gives")
            seen.add(move.partition)
        self._moving |= seen

    def _tell(self, site: int, action: Action) -> None:
        self._stage.after(self._message_s, lambda: self._stage.when_read(site, action))

    def _ask_to_pause(self, donor: int, batch: list[Moved], one_done: Action) -> None:
        self._stage.announce_pause(donor)
        self._stage.after(self._message_s, lambda: self._pause(donor, batch, one_done))

    def _pause(self, donor: int, batch: list[Moved], one_done: Action) -> None:
        for moved in batch:
            self._note(moved, "paused")
        partitions = [moved.move.partition for moved in batch]
        self._stage.pause(donor, partitions, lambda: self._quiesced(donor, batch, one_done))

    def _quiesced(self, donor: int, batch: list[Moved], one_done: Action) -> None:
        self._donating.discard(donor)
        for moved in batch:
            self._note(moved, "quiesced")
            if self._spilling is None:
                self._stage.do(donor, self._marshal(moved, partial(self._extract, moved, one_done)))
            else:
                self._spilling.give(donor, moved.move.partition, partial(self._give, moved, one_done))

    def _give(self, moved: Moved, one_done: Action, through: Action) -> None:
        """Take out a partition whose site keeps to a limit of memory."""
        spilling, move = self._spilling, moved.move
        assert spilling is not None

        def extract() -> None:
            self._extract(moved, one_done)
            spilling.left(move.donor, move.partition)
            through()

        self._stage.do(move.donor, self._marshal(moved, extract))

    def _marshal(self, moved: Moved, done: Action) -> Job:
        """Taking a state out or putting it in."""
        return Job(0.0, self._stage.settings.costs.marshal_s * int(self._sizes[moved.move.partition]), done)

    def _extract(self, moved: Moved, one_done: Action) -> None:
        partition = moved.move.partition
        in_flight = int(self._stage.arrays["partition"]["in_flight"][partition])
        assert in_flight == 0, f"partition {partition} is taken out with {in_flight} tuples on their way to it"
        self._note(moved, "extracted")
        self.on_the_wire[partition] = self._states.take(partition)
        self.network.send(moved.move.donor, moved.state_bytes * 8.0, lambda: self._receive(moved, one_done))

    def _receive(self, moved: Moved, one_done: Action) -> None:
        self._note(moved, "received")
        receiver = moved.move.receiver
        job = self._marshal(moved, lambda: self._install(moved, one_done))
        self._stage.when_read(receiver, lambda: self._stage.do(receiver, job))

    def _install(self, moved: Moved, one_done: Action) -> None:
        self._note(moved, "installed")
        partition = moved.move.partition
        self._states.put(partition, self.on_the_wire.pop(partition))
        if self._spilling is not None:
            self._spilling.arrived(moved.move.receiver, partition)
        self._stage.after(self._message_s, lambda: self._restart(moved, one_done))

    def _restart(self, moved: Moved, one_done: Action) -> None:
        self._note(moved, "restarted")
        self._stage.restart(moved.move.partition, moved.move.receiver)
        self._moving.discard(moved.move.partition)
        one_done()

    def _note(self, moved: Moved, step: str) -> None:
        moved.times_s[step] = self._stage.now_s
