"""Layout report: sizes and their ceilings, rooms, import cycles, upward imports, paths of parameters.

Run it with `python -m tools.house`. Imports by name in strings (`module:attribute`) count as imports.
"""

import ast
import io
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from adapt.cli.main import command_tree
from tools.floors import FLOORS

ROOT = Path(__file__).parent.parent
PARTS = ("api", "cli", "core", "traces")
CEILINGS = Path(__file__).parent / "ceilings.toml"
"""The most that each size may be; they only go down."""

KERNELS = {"compiled", "inlined", "flattened", "intrinsic", "njit"}
"""Decorators of compiled functions, whose many parameters are arrays."""

MOST_FILES, MOST_PARAMETERS, MOST_OF_COMMANDS = 16, 8, 12

_ROOMS = [room for rooms in FLOORS.values() for room in rooms]
_FLOOR_OF = {room: at for at, rooms in enumerate(FLOORS.values()) for room in rooms}


@dataclass(frozen=True)
class Module:
    """A source file of the package.

    Attributes:
        path: Path from the root of the repository.
        source: Text of the file.
    """

    path: Path
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """Syntax tree of the file."""
        return ast.parse(self.source)

    @property
    def name(self) -> str:
        """Import name of the module."""
        parts = list(self.path.with_suffix("").parts)
        parts = parts[1:] if parts[0] == "api" else parts
        return ".".join(["adapt", *(parts[:-1] if parts[-1:] == ["__init__"] else parts)])

    @property
    def room(self) -> str:
        """The longest room that contains the file."""
        place = self.path.with_suffix("").as_posix()
        return max((room for room in _ROOMS if f"{place}/".startswith(f"{room}/")), key=len)

    @property
    def lines(self) -> int:
        """Number of lines."""
        return self.source.count("\n")

    @property
    def tokens(self) -> int:
        """Names, operators and numbers."""
        counted = (tokenize.NAME, tokenize.OP, tokenize.NUMBER)
        return sum(each.type in counted for each in tokenize.generate_tokens(io.StringIO(self.source).readline))

    @property
    def classes(self) -> int:
        """Number of classes."""
        return sum(isinstance(node, ast.ClassDef) for node in ast.walk(self.tree))

    @cached_property
    def fields(self) -> list[str]:
        """Declared fields, by name."""
        declared = (node.target for node in ast.walk(self.tree) if isinstance(node, ast.AnnAssign))
        return [field.id for field in declared if isinstance(field, ast.Name)]

    @cached_property
    def passed(self) -> set[str]:
        """Parameters and fields that are declared or passed here, by name."""
        arguments = (node.arg for node in ast.walk(self.tree) if isinstance(node, ast.keyword | ast.arg))
        return {*self.fields, *filter(None, arguments)}

    @cached_property
    def imports(self) -> list[str]:
        """Imported modules and names, anywhere in the file."""
        names: list[str] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names += re.findall(r"^(adapt(?:\.\w+)+):\w+$", node.value)
        return names

    def parameter_lists(self) -> Iterator[tuple[int, str, bool]]:
        """Number of parameters of each function outside kernels.

        With its name, and whether it is a command.
        """
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and not KERNELS & _decorators(node):
                every = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                count = sum(each.arg not in ("self", "cls") for each in every)
                yield count, node.name, self.path.parts[:2] == ("cli", "commands") and not node.name.startswith("_")


def _decorators(node: ast.FunctionDef) -> set[str]:
    return {name.id for each in node.decorator_list for name in ast.walk(each) if isinstance(name, ast.Name)}


class House:
    """All modules of a tree and their imports."""

    def __init__(self, root: Path = ROOT) -> None:
        paths = sorted(path for part in PARTS for path in (root / part).rglob("*.py"))
        self.modules = {
            module.name: module for module in (Module(path.relative_to(root), path.read_text()) for path in paths)
        }

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Modules that each module imports."""
        return {
            name: {each for each in module.imports if each in self.modules and each != name}
            for name, module in self.modules.items()
        }

    def circles(self) -> list[tuple[str, str]]:
        """Pairs of files that import each other."""
        return [
            (name, other)
            for name, others in self.imports.items()
            for other in others
            if name < other and name in self.imports[other]
        ]

    def upward(self) -> list[tuple[str, str]]:
        """Imports of a room that the layout forbids."""
        return [
            (name, other)
            for name, others in self.imports.items()
            for other in sorted(others)
            if not _may_import(self.modules[name].room, self.modules[other].room)
        ]

    def folders(self) -> list[tuple[int, str]]:
        """Number of files directly in each folder, without `__init__`; the largest first."""
        counts = Counter(
            str(module.path.parent) for module in self.modules.values() if module.path.name != "__init__.py"
        )
        return sorted(((count, folder) for folder, count in counts.items()), reverse=True)

    def sizes(self) -> dict[str, int]:
        """Every size that has a ceiling."""
        product = [module for module in self.modules.values() if module.path.parts[0] != "api"]
        options = [name for command in _commands() for name in _options(command)]
        return {
            "lines": sum(module.lines for module in product),
            "tokens": sum(module.tokens for module in product),
            "files": len(product),
            "classes": sum(module.classes for module in product),
            "options": len(options),
            "different_options": len(set(options)),
            "circles": len(self.circles()),
            "test_lines": _lines(ROOT / "tests", "*.py"),
            "schema_lines": _lines(ROOT / "docs" / "schemas", "*.json"),
            "doc_words": sum(
                len(path.read_text().split()) for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
            ),
        }

    def paths(self) -> list[tuple[int, str]]:
        """Number of files that each option passes, if its name has one meaning; the longest paths first."""
        declared = Counter(name for module in self.modules.values() for name in module.fields)
        names = {option.lstrip("-").replace("-", "_") for command in _commands() for option in _options(command)}
        names = {name for name in names if declared[name] == 1}
        counts = Counter(name for module in self.modules.values() for name in module.passed & names)
        return [(count, name) for name, count in counts.most_common()]

    def long_parameter_lists(self) -> list[tuple[int, str]]:
        """Functions and commands with too many parameters, the longest lists first."""
        found = [
            (count, f"{module.path}:{name}")
            for module in self.modules.values()
            for count, name, command in module.parameter_lists()
            if count > (MOST_OF_COMMANDS if command else MOST_PARAMETERS)
        ]
        return sorted(found, reverse=True)


def _lines(folder: Path, pattern: str) -> int:
    return sum(path.read_text().count("\n") for path in folder.rglob(pattern))


def _pages() -> Iterator[str]:
    return (f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))


def _commands(command: Any = None) -> Iterator[Any]:
    command = command or command_tree()
    below = [each for each in getattr(command, "commands", {}).values() if not each.hidden]
    yield from (leaf for each in below for leaf in _commands(each)) if below else [command]


def _options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.hidden and "--help" not in parameter.opts:
            yield max(parameter.opts, key=len)


def ceilings() -> dict[str, int]:
    """The ceiling of each size."""
    return tomllib.loads(CEILINGS.read_text())


def _may_import(room: str, other: str) -> bool:
    if room == other or _FLOOR_OF[other] < _FLOOR_OF[room]:
        return True
    same_floor = _FLOOR_OF[room] == _FLOOR_OF[other] and _wing(room) == _wing(other)
    return same_floor and _ROOMS.index(other) < _ROOMS.index(room)


def _wing(room: str) -> str:
    return "/".join(room.split("/")[: 2 if room.startswith("core/") else 1])


def main() -> None:
    """Print the layout report."""
    house = House()
    most = ceilings()
    for name, size in house.sizes().items():
        print(f"{name:<20} {size:>9,}  of at most {most[name]:>9,}")
    for floor, rooms in FLOORS.items():
        print(floor)
        for room in rooms:
            of_room = [module for module in house.modules.values() if module.room == room]
            print(f"    {room:<40} {len(of_room):>3} files {sum(module.lines for module in of_room):>6} lines")
    _listed("import cycles", [f"{one} <-> {other}" for one, other in house.circles()])
    _listed("upward imports", [f"{one} -> {other}" for one, other in house.upward()])
    _listed("largest folders", [f"{count:>4} {folder}" for count, folder in house.folders()[:5]], counted=False)
    longest = sorted(((module.lines, str(module.path)) for module in house.modules.values()), reverse=True)[:10]
    _listed("longest files", [f"{lines:>4} {path}" for lines, path in longest], counted=False)
    _listed("longest paths of options", [f"{count:>4} {name}" for count, name in house.paths()[:10]], counted=False)
    _listed("too many parameters", [f"{count:>4} {where}" for count, where in house.long_parameter_lists()])


def _listed(title: str, rows: list[str], *, counted: bool = True) -> None:
    print("\n    ".join([f"{title}: {len(rows)}" if counted else title, *rows]))


if __name__ == "__main__":
    main()
