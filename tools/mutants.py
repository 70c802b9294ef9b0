"""Mutants of plain Python: small changes of a room that none of its own tests notices.

`python -m tools.mutants` draws them by a seed, runs each against the tests of its room, keeps what came of it under
`build/mutants`, goes on there after an interrupt, and prints the score and the survivors. Compiled functions are left
out, as their tests hold them against a plain form. A change is made in memory alone, in the process of the tests.
"""

import ast
import json
import os
import random
import resource
import subprocess
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parent.parent
ROOMS = ("core/partitioning", "core/verdict", "core/flux", "core/fit", "traces/ingest", "traces/store")
KEPT = ROOT / "build" / "mutants"
CPU_S, WALL_S = 150, 1200
"""The most that the tests of a mutant may take; one that takes more is noticed."""

VARIABLE = "ADAPT_MUTANT"
"""Module and file of the changed source, for the process of the tests."""

KERNELS = {"compiled", "inlined", "flattened", "intrinsic", "njit"}


class Changed(SourceFileLoader):
    """Loads a module from another source under its own name and path."""

    def get_code(self, fullname: str) -> CodeType | None:  # noqa: ARG002
        return compile(Path(os.environ[VARIABLE].split("=")[1]).read_bytes(), self.path, "exec", dont_inherit=True)


class Finder:
    """Finds the module that is changed, and leaves all others to those after it."""

    @staticmethod
    def find_spec(name: str, _path: object, _target: object = None) -> ModuleSpec | None:
        if name != os.environ[VARIABLE].split("=")[0]:
            return None
        path = str(ROOT / f"{name.removeprefix('adapt.').replace('.', '/')}.py")
        return spec_from_file_location(name, path, loader=Changed(name, path))


if VARIABLE in os.environ:  # as a plugin of pytest
    sys.meta_path.insert(0, Finder)


@cache
def operators() -> dict[str, Any]:
    """Changes of meaning by their names: of comparisons, arithmetic, truth, numbers and the ends of loops."""
    from cosmic_ray.plugins import get_operator, operator_names

    wanted = (
        *("ReplaceComparison", "ReplaceBinary", "ReplaceUnary", "AddNot", "ReplaceTrue", "ReplaceFalse", "ReplaceAnd"),
        *("ReplaceOr", "ReplaceBreak", "ReplaceContinue", "NumberReplacer", "ZeroIteration"),
    )
    # `|` stands in annotations, and whether two values are one is not what `==` asks
    other = ("BitOr", "RShift", "LShift", "BitXor", "Pow", "Is", "IsNot")
    names = [name.removeprefix("core/") for name in operator_names()]
    return {
        name: get_operator(f"core/{name}")()
        for name in names
        if name.startswith(wanted) and (name.endswith(("_Is_IsNot", "_IsNot_Is")) or not {*name.split("_")} & {*other})
    }


def mutants_of(path: Path) -> Iterator[list[tuple[str, int, int]]]:
    """By place in a file: operators, each with the number of its place among those of the operator, and the line."""
    from cosmic_ray.ast import ast_nodes, get_ast

    source = path.read_text(encoding="utf-8")
    compiled = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        and any(
            KERNELS & {each.id for each in ast.walk(used) if isinstance(each, ast.Name)} for used in node.decorator_list
        )
    ]
    places: dict[tuple[Any, Any], list[tuple[str, int, int]]] = {}
    numbers = Counter[str]()
    for node in ast_nodes(get_ast(source)):
        for name, operator in operators().items():
            for start, end in operator.mutation_positions(node):
                if not any(start[0] in lines for lines in compiled):
                    places.setdefault((start, end), []).append((name, numbers[name], start[0]))
                numbers[name] += 1
    yield from places.values()


def drawn(seed: int, count: int) -> list[dict[str, Any]]:
    """So many places of all files, by chance, each with one change; last those whose tests start Spark."""
    chance = random.Random(seed)
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    places = [(path, changes) for path in files for changes in mutants_of(path)]
    found = []
    for path, changes in chance.sample(places, min(count, len(places))):
        operator, number, line = chance.choice(changes)
        found.append({"file": str(path.relative_to(ROOT)), "line": line, "operator": operator, "number": number})
    return sorted(found, key=lambda each: each["file"].startswith("traces/"))


def tests_of(file: str) -> list[str]:
    """The tests of a file's room, those of the file first."""
    folder = Path("tests") / Path(file).parent
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    own = folder / f"test_{Path(file).stem}.py"
    return [str(own), str(folder)] if (ROOT / own).exists() else [str(folder)]


def outcome(mutant: dict[str, Any]) -> dict[str, Any]:
    """What the tests say of a mutant: `noticed`, `too long` or `survived`, with the line before and after."""
    from cosmic_ray.mutating import mutate_code

    source = (ROOT / mutant["file"]).read_text(encoding="utf-8")
    changed = mutate_code(source, operators()[mutant["operator"]], mutant["number"])
    assert changed is not None, mutant
    lines = zip(source.splitlines(), changed.splitlines(), strict=False)
    differing = next(([before.strip(), after.strip()] for before, after in lines if before != after), ["", ""])
    held = KEPT / f"{os.getpid()}.py"
    held.write_text(changed, encoding="utf-8")
    module = f"adapt.{mutant['file'].removesuffix('.py').replace('/', '.')}"
    line = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "tools.mutants", "-p", "no:cacheprovider", "-n", "0"]
    surroundings = os.environ | {VARIABLE: f"{module}={held}"}
    try:
        done = subprocess.run(
            [*line, *tests_of(mutant["file"])],
            cwd=ROOT, env=surroundings, capture_output=True, timeout=WALL_S, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S)),
        )  # fmt: skip
        result = "survived" if done.returncode == 0 else "noticed" if done.returncode > 0 else "too long"
    except subprocess.TimeoutExpired:
        result = "too long"
    finally:
        held.unlink()
    return {**mutant, "change": differing, "result": result}


def main() -> None:
    """Run the mutants that were not run, and print the score."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--most", type=int, default=None, help="Most mutants of this run.")
    asked = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{asked.seed}.jsonl"
    known = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(each["file"], each["operator"], each["number"]) for each in known}
    missing = [
        each for each in drawn(asked.seed, asked.count) if (each["file"], each["operator"], each["number"]) not in done
    ]
    for mutant in missing[: asked.most]:
        known.append(outcome(mutant))
        with kept.open("a") as file:
            file.write(json.dumps(known[-1]) + "\n")
        print(
            f"{len(known)}: {known[-1]['result']}: {known[-1]['file']}:{known[-1]['line']}", file=sys.stderr, flush=True
        )
    for each in known:
        if each["result"] == "survived":
            print(f"{each['file']}:{each['line']}: {each['change'][0]}\n    -> {each['change'][1]}")
    noticed = sum(each["result"] != "survived" for each in known)
    print(f"{noticed} of {len(known)} mutants noticed ({noticed / max(len(known), 1):.0%}), seed {asked.seed}")


if __name__ == "__main__":
    main()
