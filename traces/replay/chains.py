"""Chains of operators by file, with the functions in Python that they name; and those that are known by name."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from adapt.core.errors import BadInput, did_you_mean
from adapt.core.ordered.chain.bound import columns_by_operator, columns_of
from adapt.core.ordered.chain.chain import Chain, PythonFunction
from adapt.core.ordered.chain.chain_file import operator_lines, read_chain
from adapt.core.ordered.retail.retail import PRESETS
from adapt.traces.read_errors import parsed


@dataclass(frozen=True, slots=True)
class NamedChain:
    """A chain, with what it was called and what it said.

    Attributes:
        name: Of the file, or of the preset.
        text: All of it.
        chain: What it means.
    """

    name: str
    text: str
    chain: Chain

    def columns(self) -> list[str]:
        """The columns of a stream that it reads, each once."""
        return list(columns_of(self.chain))

    def check_columns(self, columns: Sequence[str]) -> None:
        """Whether a stream has the columns that its operators name.

        Raises:
            BadInput: it has not; the sentence names chain, line and operator, and the columns that there are.
        """
        punctuations = self.chain.punctuations
        if punctuations is not None and punctuations.column not in columns:
            raise BadInput(
                f"{self.name}: the punctuations go by column {punctuations.column!r}, which the trace does not have"
                f"{did_you_mean(punctuations.column, columns)}"
            )
        lines = operator_lines(self.text)
        for at, (operator, named) in enumerate(zip(self.chain.operators, columns_by_operator(self.chain), strict=True)):
            for column in named:
                if column not in columns:
                    line = f", line {lines[at]}" if len(lines) == len(self.chain.operators) else ""
                    raise BadInput(
                        f"{self.name}{line}: operator {operator.name!r}: the trace has no column {column!r}"
                        f"{did_you_mean(column, columns)}; other columns of a source are kept by `adapt ingest --keep`"
                    )


def open_chain(path: Path) -> NamedChain:
    """Read a chain from its file; where there is no such file, take the preset of that name.

    Functions in Python are imported as they are named, also from beside the file.

    Raises:
        BadInput: there is none, or it is none; the sentence begins with the file, and names the line where it can.
    """
    if str(path) in PRESETS and not path.exists():
        preset = PRESETS[str(path)]
        return NamedChain(str(path), preset.text, preset.chain)
    no_text = "is no text in UTF-8; give a chain of operators in TOML"
    return parsed(path, lambda text: NamedChain(path.name, text, read_chain(text, _loader(path.parent))), no_text)


def _loader(folder: Path) -> Callable[[str], PythonFunction]:
    """Finds functions by `module:function`, in modules beside the file too."""

    def load(name: str) -> PythonFunction:
        module_name, _, function_name = name.partition(":")
        beside = str(folder.absolute())
        sys.path.append(beside)
        try:
            module = import_module(module_name)
        except Exception as error:
            raise BadInput(
                f"function {name!r}: the module {module_name!r} cannot be imported ({type(error).__name__}: {error}); "
                "it is looked for where Python looks, and beside the chain"
            ) from error
        finally:
            sys.path.remove(beside)
        call = getattr(module, function_name, None)
        if not callable(call):
            known = [each for each in vars(module) if callable(getattr(module, each)) and not each.startswith("_")]
            raise BadInput(
                f"function {name!r}: {module_name} has no function {function_name!r}"
                f"{did_you_mean(function_name, known)}"
            )
        return PythonFunction(name, call)

    return load
