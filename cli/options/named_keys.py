"""Options that limit a plan: capacities, pins, migration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapt.cli.terminal.output import narrate
from adapt.core.partitioning.measures.plan_settings import EXPERT, PlanSettings, refused
from adapt.core.units.settings import same, settings
from adapt.traces.locations.location import location

if TYPE_CHECKING:
    from adapt.core.counting.frequencies import Frequencies
    from adapt.core.partitioning.problem.constraints import Constraints
    from adapt.core.partitioning.problem.named_keys import Pin


@settings(panel=EXPERT)
class LimitOptions:
    """Options that limit a plan; keys are still text."""

    capacity: str | None = same(PlanSettings, "capacity")
    pin: list[str] | None = same(PlanSettings, "pin")
    max_migration: str | None = same(PlanSettings, "max_migration")

    def judged(self, channels: Sequence[int]) -> "Limits":
        """The limits for these channel counts, checked before keys are counted."""
        from adapt.core.partitioning.problem.constraints import Constraints, MigrationLimit
        from adapt.core.partitioning.problem.named_keys import Pin, one_pin_each
        from adapt.traces.named_keys import read_pins

        constraints = Constraints(
            capacities=None if self.capacity is None else _capacities(self.capacity),
            max_migration=None if self.max_migration is None else MigrationLimit.parse(self.max_migration),
        )
        for count in channels:
            constraints.check_channels(count)
        files = {text for text in self.pin or () if "=" not in text and location(text).exists()}
        pinned = [
            pin
            for text in self.pin or ()
            for pin in (read_pins(location(text)) if text in files else [Pin.parse(text)])
        ]
        return Limits(constraints, one_pin_each(pinned, channels))


@dataclass(frozen=True, slots=True)
class Limits:
    """Checked limits whose keys are still text.

    `without_keys` has capacities and the migration limit.
    """

    without_keys: "Constraints"
    pins: "tuple[Pin, ...]"

    def constraints(self, frequencies: "Frequencies") -> "Constraints":
        """The constraints, with pins as keys of the counted type."""

        from adapt.core.partitioning.problem.named_keys import pinned_keys, unlisted

        if not self.pins:
            return self.without_keys
        pinned = pinned_keys(self.pins, frequencies)
        light = unlisted(pinned.column, frequencies)
        if light:
            narrate(f"{light:,} of {len(pinned):,} pinned keys are too rare to be in the counts; their load is unknown")
        return replace(self.without_keys, pinned=pinned)


def _capacities(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise refused(f"{{capacity}} takes one number above 0 per worker, such as 1,1,2 (got {text!r})") from None
