"""State of a stage by the rows of a trace."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.growth import Growth
from adapt.core.units.row_or_time_span import Length


class StateUnit(StrEnum):
    """What adds to the state."""

    ROWS = "rows"
    """Each row, by a tuple."""

    BYTES = "bytes"
    """Each row, by its bytes."""

    KEYS = "keys"
    """The first row of a key, by a tuple."""


@dataclass(frozen=True, slots=True)
class StateSource:
    """What adds to the state, and how long it stays."""

    unit: StateUnit  # what adds to the state
    # how long rows stay, in trace time, or how many rows of a key stay; None, forever and all
    window: Length | None = None

    def __post_init__(self) -> None:
        if self._last_rows and self.unit is not StateUnit.ROWS:
            raise UsageError(
                f"a state of {self.unit} takes a window of time (got {self.window}); use rows@{self.window}, or"
                f" {self.unit}@10m"
            )

    @classmethod
    def parse(cls, text: str, what: str) -> "StateSource":
        """Parse a state such as rows@10m."""
        unit, limited, window = text.partition("@")
        if unit not in [one.value for one in StateUnit]:
            raise UsageError(f"{what} takes a number of tuples, or rows, bytes or keys, as in rows@10m (got {text!r})")
        return cls(StateUnit(unit), Length.parse(window, f"{what}: the window") if limited else None)

    @property
    def by_key(self) -> bool:
        """Whether the state depends on the keys of the rows."""
        return self.unit is StateUnit.KEYS or self._last_rows > 0

    @property
    def _last_rows(self) -> int:
        return self.window.size if self.window is not None and self.window.in_rows else 0

    def growth(self, tuple_bytes: int) -> Growth:
        """Growth of a stage, with times in microseconds."""
        return Growth(
            group_bytes=tuple_bytes if self.unit is StateUnit.KEYS else 0,
            row_bytes=tuple_bytes if self.unit is StateUnit.ROWS else 0,
            sized=self.unit is StateUnit.BYTES,
            window=self.window.size if self.window is not None and not self.window.in_rows else None,
            rows_per_group=self._last_rows,
        )

    def parameters(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {"state_from": self.unit.value, "state_window": None if self.window is None else str(self.window)}
