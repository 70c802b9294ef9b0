"""Options on what runs a stage."""

from dataclasses import dataclass
from typing import ClassVar

from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import BackendName, WorkName


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """What runs a stage."""

    PANEL: ClassVar[str] = "Processes"
    backend: BackendName = setting(
        BackendName.SIM,
        "Simulate workers, or run them as processes.",
        panel="Options",
    )
    work: WorkName = setting(
        WorkName.CPU, "What a process does for a row: use the CPU for its cost, or wait for a loopback service."
    )
    function: str | None = setting(
        None,
        "Function that a process calls for a row instead. It takes the state of the key (None at first), the key and"
        " the row's number, and returns the new state.",
        "MODULE:FUNCTION",
    )

    def worked(self) -> str | None:
        """What a process does for a row; None for a simulation.

        Raises:
            UsageError: An option for processes is given with a simulation, or two of them contradict.
        """
        if self.backend is BackendName.SIM:
            if self.function is not None or self.work is not WorkName.CPU:
                raise UsageError("--work and --function need --backend processes")
            return None
        if self.function is not None and self.work is not WorkName.CPU:
            raise UsageError("--work does not apply to --function; omit one")
        return self.function or self.work.value
