"""Options of `adapt calibrate` on its output."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adapt.cli.options.groups import setting
from adapt.cli.options.result import ForceOption
from adapt.cli.terminal.output import Format, FormatOption, narrate, narrate_written, show

if TYPE_CHECKING:
    from adapt.core.costs.calibration import Calibration


@dataclass(frozen=True, slots=True)
class ProfileOutput:
    """Where a cost profile is written, and how it is shown."""

    out: Path | None = setting(None, "Cost profile to write.", "FILE.toml", "--out", "-o")
    format: FormatOption = Format.TABLE
    force: ForceOption = False

    def check(self) -> None:
        """Check that the profile can be written, before any work."""
        from adapt.traces.store.atomic import check_free

        if self.out is not None:
            check_free(self.out, force=self.force)

    def show(self, made: "Calibration") -> None:
        """Write a profile, and show what was found and what not."""
        from adapt.traces.store.atomic import write_whole

        if self.out is not None:
            write_whole(self.out, made.as_file().encode(), force=self.force)
            narrate_written(self.out)
        for note in made.notes:
            narrate(note)
        show(made.displayed(), self.format)
