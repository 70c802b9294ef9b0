"""What placements must keep to, as a user asks for it: capacities, pins, a limit to migration, keys to track."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from adapt.cli.options.groups import EXPERT, setting
from adapt.cli.terminal.output import narrate
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from adapt.core.counting.frequencies import Frequencies
    from adapt.core.partitioning.problem.constraints import Constraints
    from adapt.core.partitioning.problem.named_keys import NamedKey, Pin


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """The options; keys are still text."""

    PANEL = EXPERT
    track_keys: Path | None = setting(None, "Track exactly the keys in this file, one a line.", "FILE")
    capacity: str | None = setting(
        None, "What each channel can carry in relation to the others, e.g. 1,1,2: loads are then utilisations.", "X,X,X"
    )
    pin: list[str] | None = setting(
        None, "Keep this key on this channel, whatever it weighs; repeatable.", "KEY=CHANNEL"
    )
    pins: Path | None = setting(None, "Pins as a CSV of key,channel.", "FILE.csv")
    max_migration: str | None = setting(
        None,
        "Most state that may migrate in a step: in units of m (1 is an average channel's), or of all state.",
        "X|P%",
    )

    def judged(self, channels: Sequence[int], track: int | None) -> "Limits":
        """The limits for these channel counts, as far as they can be judged before keys are counted.

        Raises:
            UsageError: an option cannot be read, or does not fit the channels or another option.
            BadInput: a file cannot be read.
        """
        from adapt.core.partitioning.problem.constraints import Constraints, MigrationLimit
        from adapt.core.partitioning.problem.named_keys import Pin, one_pin_each
        from adapt.traces.named_keys import read_key_list, read_pins

        if track is not None and self.track_keys is not None:
            raise UsageError("--track and --track-keys are two ways to say what is tracked; give one")
        constraints = Constraints(
            capacities=None if self.capacity is None else _capacities(self.capacity),
            max_migration=None if self.max_migration is None else MigrationLimit.parse(self.max_migration),
        )
        for count in channels:
            constraints.check_channels(count)
        pinned = [*(Pin.parse(text) for text in self.pin or ()), *(read_pins(self.pins) if self.pins else ())]
        tracked = None if self.track_keys is None else tuple(read_key_list(self.track_keys))
        return Limits(constraints, one_pin_each(pinned, channels), tracked)


@dataclass(frozen=True, slots=True)
class Limits:
    """What was judged before keys are counted; named keys are still text.

    `without_keys` has capacities and the limit to migration; `track` is None where the heaviest keys are tracked.
    """

    without_keys: "Constraints"
    pins: "tuple[Pin, ...]"
    track: "tuple[NamedKey, ...] | None"

    def constraints(self, frequencies: "Frequencies") -> "Constraints":
        """The constraints, with pins as keys of the type of those that were counted.

        Raises:
            BadInput: a pinned key is no key of that type, or was not counted.
        """

        from adapt.core.partitioning.problem.named_keys import pinned_keys, unlisted

        if not self.pins:
            return self.without_keys
        pinned = pinned_keys(self.pins, frequencies)
        light = unlisted(pinned.column, frequencies)
        if light:
            narrate(
                f"{light:,} of {len(pinned):,} pinned keys are too light to be listed; what they weigh is not known"
            )
        return replace(self.without_keys, pinned=pinned)

    def track_keys(self, frequencies: "Frequencies") -> "pa.Array | None":
        """The keys to track, of the type of those that were counted; None, the heaviest.

        Raises:
            BadInput: one is no key of that type, or was not counted.
        """
        from adapt.core.partitioning.problem.named_keys import typed_keys, unlisted

        if self.track is None:
            return None
        keys = typed_keys(self.track, frequencies)
        light = unlisted(keys, frequencies)
        if light:
            narrate(f"{light:,} of {len(keys):,} keys to track are too light to be listed; they are left to hashing")
        return keys


def _capacities(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--capacity {text!r} is not a list of numbers above 0, one a channel, e.g. 1,1,2") from None
