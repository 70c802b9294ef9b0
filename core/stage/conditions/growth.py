"""Growth and expiry of state."""

from dataclasses import dataclass

from adapt.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth and expiry of the state of a group.

    State begins empty. A processed row enters the state of its group, and leaves it once it is more than a window older
    than the watermark: the event time of the oldest row that has arrived and is not processed. A group without rows
    takes no state.
    """

    group_bytes: int = 0  # state of a group with rows, besides the rows
    row_bytes: int = 0  # state of a row
    sized: bool = False  # whether each row has its own size too (`Chunk.sizes`)
    window: int | None = None  # how long rows stay, in the unit of `Chunk.times`; None, forever
    rows_per_group: int = 0  # last rows that a group keeps; 0, all

    def __post_init__(self) -> None:
        least = min(self.group_bytes, self.row_bytes, self.rows_per_group, self.window or 0)
        if least < 0:
            raise UsageError(
                f"state cannot shrink as rows are added; sizes and windows must be at least 0 (got {least})"
            )
        if self.rows_per_group and self.is_ranked:
            raise UsageError("a group keeps its last rows, or those of a window of time or with own sizes, not both")

    @property
    def is_ranked(self) -> bool:
        """Whether the state depends on times or sizes of single rows."""
        return self.sized or self.window is not None
