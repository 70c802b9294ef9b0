"""Options that limit a plan: capacities, pins, migration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from adapt.cli.options.groups import EXPERT, setting
from adapt.cli.options.loads import MaxMigrationOption
from adapt.cli.terminal.output import narrate
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from adapt.core.counting.frequencies import Frequencies
    from adapt.core.partitioning.problem.constraints import Constraints
    from adapt.core.partitioning.problem.named_keys import NamedKey, Pin


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Options that limit a plan; keys are still text."""

    PANEL = EXPERT
    pin_only: Path | None = setting(None, "Pin exactly the keys in this file, one per line.", "FILE")
    capacity: str | None = setting(
        None, "Relative capacity of each channel, e.g. 1,1,2. Imbalance is then of utilization.", "X,X,X"
    )
    pin: list[str] | None = setting(None, "Pin this key to this channel; repeatable.", "KEY=CHANNEL")
    pins: Path | None = setting(None, "Pin the keys of this CSV of key,channel.", "FILE.csv")
    max_migration: MaxMigrationOption = None

    def judged(self, channels: Sequence[int], max_pins: int | None) -> "Limits":
        """The limits for these channel counts, checked before keys are counted.

        Raises:
            UsageError: an option is invalid, or does not fit the channels or another option.
            BadInput: a file cannot be read.
        """
        from adapt.core.partitioning.problem.constraints import Constraints, MigrationLimit
        from adapt.core.partitioning.problem.named_keys import Pin, one_pin_each
        from adapt.traces.named_keys import read_key_list, read_pins

        if max_pins is not None and self.pin_only is not None:
            raise UsageError("--max-pins and --pin-only exclude each other; give one")
        constraints = Constraints(
            capacities=None if self.capacity is None else _capacities(self.capacity),
            max_migration=None if self.max_migration is None else MigrationLimit.parse(self.max_migration),
        )
        for count in channels:
            constraints.check_channels(count)
        pinned = [*(Pin.parse(text) for text in self.pin or ()), *(read_pins(self.pins) if self.pins else ())]
        only = None if self.pin_only is None else tuple(read_key_list(self.pin_only))
        return Limits(constraints, one_pin_each(pinned, channels), only)


@dataclass(frozen=True, slots=True)
class Limits:
    """Checked limits whose keys are still text.

    `without_keys` has capacities and the migration limit; `only` is None where the hottest keys are pinned.
    """

    without_keys: "Constraints"
    pins: "tuple[Pin, ...]"
    only: "tuple[NamedKey, ...] | None"

    def constraints(self, frequencies: "Frequencies") -> "Constraints":
        """The constraints, with pins as keys of the counted type.

        Raises:
            BadInput: a pinned key is not of that type, or was not counted.
        """

        from adapt.core.partitioning.problem.named_keys import pinned_keys, unlisted

        if not self.pins:
            return self.without_keys
        pinned = pinned_keys(self.pins, frequencies)
        light = unlisted(pinned.column, frequencies)
        if light:
            narrate(f"{light:,} of {len(pinned):,} pinned keys are too rare to be in the counts; their load is unknown")
        return replace(self.without_keys, pinned=pinned)

    def pin_only(self, frequencies: "Frequencies") -> "pa.Array | None":
        """The keys to pin; None for the hottest.

        Raises:
            BadInput: one is not of that type, or was not counted.
        """
        from adapt.core.partitioning.problem.named_keys import typed_keys, unlisted

        if self.only is None:
            return None
        keys = typed_keys(self.only, frequencies)
        light = unlisted(keys, frequencies)
        if light:
            narrate(f"{light:,} of {len(keys):,} keys to pin are too rare to be in the counts; they stay hashed")
        return keys


def _capacities(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--capacity takes one number above 0 per channel, such as 1,1,2 (got {text!r})") from None
