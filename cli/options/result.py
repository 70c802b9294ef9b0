"""Options of what is shown and written."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from adapt.cli.options.groups import option, setting
from adapt.cli.terminal.output import Format, FormatOption, is_for_programs

ForceOption: TypeAlias = Annotated[bool, option("Replace what stands at the output.", None, "--force")]


@dataclass(frozen=True, slots=True)
class Output:
    """How much is shown, how it is printed, and whether the output is overwritten."""

    all: bool = setting(False, "Show all columns and rows, not only what is needed first.", None, "--all")
    format: FormatOption = Format.TABLE
    force: ForceOption = False

    @property
    def whole(self) -> bool:
        """Whether every table is shown."""
        return self.all or is_for_programs(self.format)
