"""Runs of the three jobs, kept one by one."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from adapt.traces.store.atomic import replace_whole
from reality.rekeyed.workload import Keys
from reality.scenarios import Engine


@dataclass(frozen=True, slots=True)
class Run:
    """What a run showed.

    Attributes:
        wall_s: From the first row until the last result.
        rows: Rows of each worker.
        messages: Merge messages.
        results_are_right: Whether count, sum and maximum of every key are exact.
        profile: Cost profile of the rows, as the text of its file.
        batch_s: What a batch of Spark takes beyond its slowest task.
        noise: Noise of the machine beside it.
    """

    wall_s: float
    rows: list[int]
    messages: int
    results_are_right: bool
    profile: str
    batch_s: float = 0.0
    noise: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kept:
    """Runs in a folder, a JSON file each."""

    folder: Path

    def runs(self, engine: Engine, keys: Keys) -> list[Run]:
        """Finished runs in their order."""
        return [Run(**json.loads(path.read_bytes())) for path in sorted(self._of(engine, keys).glob("*.json"))]

    def keep(self, engine: Engine, keys: Keys, number: int, run: Run) -> None:
        """Write a run atomically."""
        folder = self._of(engine, keys)
        folder.mkdir(parents=True, exist_ok=True)
        replace_whole(folder / f"{number}.json", json.dumps(asdict(run), indent=1, allow_nan=False).encode())

    def missing(self, engine: Engine, runs: int) -> Iterable[tuple[int, Keys]]:
        """The runs that are not there; those of a job are spread over the whole time."""
        return [(number, keys) for number in range(runs) for keys in Keys if number >= len(self.runs(engine, keys))]

    def _of(self, engine: Engine, keys: Keys) -> Path:
        return self.folder / engine / keys
