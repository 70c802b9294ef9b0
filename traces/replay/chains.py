"""Chains from files, and chains available by name."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType

from adapt.core.errors import BadInput, did_you_mean
from adapt.core.ordered.chain.bound import columns_by_operator, columns_of
from adapt.core.ordered.chain.chain import Chain, made_before, operator_lines, read_chain
from adapt.core.ordered.chain.layouts import reaching
from adapt.core.ordered.chain.own import OwnFunction, own_function
from adapt.core.ordered.presets.presets import PRESETS, Preset
from adapt.traces.read_errors import parsed


@dataclass(frozen=True, slots=True)
class NamedChain:
    """A chain with its name and text."""

    name: str  # name of the file, or of a chain available by name
    text: str  # text of the file
    chain: Chain  # the parsed chain
    preset: Preset | None = None  # the chain available by name; None for a file

    def columns(self) -> list[str]:
        """Columns of a trace that the chain reads, without duplicates."""
        return list(columns_of(self.chain))

    def check_columns(self, columns: Sequence[str], *more: Sequence[str]) -> None:
        """Check that the traces of all inputs have the chain's columns."""
        punctuations, graph, telling = self.chain.punctuations, self.chain.graph, self.chain.input_column
        of_inputs = (columns, *more) if telling is None else [columns] * len(graph.inputs)
        if telling is not None and telling not in columns:
            raise BadInput(
                f"{self.name}: input_column: column {telling!r} does not exist{did_you_mean(telling, columns)}; keep "
                "more columns of a source with `adapt ingest --keep`"
            )
        for name, there in zip(graph.inputs, of_inputs, strict=True):
            if punctuations is not None and punctuations.column not in there:
                where = f" in input {name!r}" if more else ""
                raise BadInput(
                    f"{self.name}: [punctuations]: column {punctuations.column!r} does not exist{where}"
                    f"{did_you_mean(punctuations.column, there)}"
                )
        lines, made = operator_lines(self.text), made_before(self.chain.operators, graph)
        for at, (operator, named) in enumerate(zip(self.chain.operators, columns_by_operator(self.chain), strict=True)):
            for column in (name for name in named if name not in made[at]):
                # A column that nothing makes; if an earlier operator drops it, the binding says so.
                reached = reaching(self.chain, at, column) or range(len(of_inputs))
                if not any(column in of_inputs[number] for number in reached):
                    there = list(dict.fromkeys(name for number in sorted(reached) for name in of_inputs[number]))
                    line = f", line {lines[at]}" if len(lines) == len(self.chain.operators) else ""
                    raise BadInput(
                        f"{self.name}{line}: operator {operator.name!r}: column {column!r} does not exist"
                        f"{did_you_mean(column, there)}; keep more columns of a source with `adapt ingest --keep`"
                    )


def open_chain(path: Path) -> NamedChain:
    """Read a chain file, or a chain available by name.

    Own functions are imported from the module path and from the folder of the file.
    """
    if str(path) in PRESETS and not path.exists():
        preset = PRESETS[str(path)]
        return NamedChain(str(path), preset.text, preset.chain, preset)
    no_text = "is not UTF-8 text; give a chain of operators in TOML"
    return parsed(path, lambda text: NamedChain(path.name, text, read_chain(text, _loader(path.parent))), no_text)


_beside_chains = set[str]()
"""Modules from folders of chains: each chain imports its own, as it is now."""


def _imported(name: str, folder: Path) -> ModuleType:
    sys.path.append(beside := str(folder.absolute()))
    if name in _beside_chains:
        sys.modules.pop(name, None)
    invalidate_caches()
    try:
        module = import_module(name)
    finally:
        sys.path.remove(beside)
    if Path(getattr(module, "__file__", None) or "").is_relative_to(beside):
        _beside_chains.add(name)
    return module


def _loader(folder: Path) -> Callable[[str], OwnFunction]:
    """Load functions by `module:function`, also from modules in the folder of the file."""
    modules = dict[str, ModuleType]()

    def load(name: str) -> OwnFunction:
        module_name, _, function_name = name.partition(":")
        try:
            module = modules.get(module_name) or modules.setdefault(module_name, _imported(module_name, folder))
        except Exception as error:
            raise BadInput(
                f"function {name!r}: the module {module_name!r} cannot be imported ({type(error).__name__}: {error}); "
                "modules are looked up on Python's path and in the folder of the chain"
            ) from error
        call = getattr(module, function_name, None)
        if not callable(call):
            known = [each for each in vars(module) if callable(getattr(module, each)) and not each.startswith("_")]
            raise BadInput(
                f"function {name!r}: {module_name} has no function {function_name!r}"
                f"{did_you_mean(function_name, known)}"
            )
        return own_function(name, call)

    return load
