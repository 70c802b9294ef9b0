"""How many parameters functions take: 8 at most, commands 12, kernels as many as they need."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from adapt.cli.main import app

ROOT = Path(__file__).parent.parent
SOURCES = sorted(path for part in ("cli", "core", "traces") for path in (ROOT / part).rglob("*.py"))
KERNELS = {"compiled", "inlined", "flattened"}
MOST, MOST_OF_A_COMMAND = 8, 12

# Temporary: goes when the commands of ingest and replay take option groups.
NOT_YET = {
    *("cli/commands/ingest.py", "cli/commands/replay.py", "cli/commands/replay_compare.py"),
    *("cli/commands/replay_elastic.py", "cli/commands/replay_fit.py", "cli/commands/replay_flux.py"),
    *("cli/commands/replay_ordered.py", "core/flux/replay/replay.py", "core/stage/assembly.py"),
    *("core/stage/simulate.py", "traces/generators/clicks.py", "traces/generators/sales.py"),
    *("traces/generators/self_similar.py", "traces/generators/zipf.py", "traces/ingest/ingest.py"),
    *("traces/replay/fit.py", "traces/replay/ordered.py", "traces/replay/repartition.py"),
}


def commands_of(program: typer.Typer) -> Iterator[tuple[Path, str]]:
    """The file and the name of each command's function."""
    for command in program.registered_commands:
        function = inspect.unwrap(command.callback)
        yield Path(inspect.getfile(function)).resolve(), function.__name__
    for group in program.registered_groups:
        yield from commands_of(group.typer_instance)


COMMANDS = set(commands_of(app))


def parameters_of(function: ast.FunctionDef) -> list[str]:
    """The names of what a function takes, without its receiver."""
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [each.arg for each in every if each.arg not in ("self", "cls")]


def is_kernel(function: ast.FunctionDef) -> bool:
    """Whether a function is compiled."""
    return any(isinstance(each, ast.Name) and each.id in KERNELS for each in function.decorator_list)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_take_few_parameters(path: Path) -> None:
    if str(path.relative_to(ROOT)) in NOT_YET:
        pytest.skip("option groups are to come")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and not is_kernel(node):
            most = MOST_OF_A_COMMAND if (path, node.name) in COMMANDS else MOST
            given = parameters_of(node)
            assert len(given) <= most, f"{path}:{node.lineno}: {node.name} takes {len(given)}: {', '.join(given)}"
