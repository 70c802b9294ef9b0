"""The rules of the house: which part may import which, what help may load, what the package holds."""

import ast
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import adapt
from adapt import notebook
from tools.floors import FLOORS
from tools.house import MOST_FILES, PARTS, ROOT, House, ceilings

HOUSE = House()
MODULES = list(HOUSE.modules.values())
CORE = [module for module in MODULES if module.path.parts[0] == "core"]


def test_a_room_imports_only_rooms_below_it() -> None:
    assert HOUSE.upward() == []


def test_no_two_files_import_each_other() -> None:
    assert HOUSE.circles() == []


def test_no_size_is_above_its_ceiling() -> None:
    most = ceilings()
    assert {name: (size, most[name]) for name, size in HOUSE.sizes().items() if size > most[name]} == {}


def test_no_folder_holds_many_files() -> None:
    assert [(count, folder) for count, folder in HOUSE.folders() if count > MOST_FILES] == []


def test_no_parameter_list_is_long() -> None:
    """8 parameters at most, 12 for commands; kernels have as many as they need."""
    assert HOUSE.long_parameter_lists() == []


def test_every_room_has_files() -> None:
    assert {room for rooms in FLOORS.values() for room in rooms} == {module.room for module in MODULES}


def test_an_arrow_upward_is_found(tmp_path: Path) -> None:
    (tmp_path / "core" / "flux" / "policies").mkdir(parents=True)
    (tmp_path / "core" / "elastic" / "policies").mkdir(parents=True)
    (tmp_path / "core" / "flux" / "policies" / "one.py").write_text("import adapt.core.elastic.policies.two\n")
    (tmp_path / "core" / "elastic" / "policies" / "two.py").write_text('HOME = "adapt.core.flux.policies.one:f"\n')
    house, one, two = House(tmp_path), "adapt.core.flux.policies.one", "adapt.core.elastic.policies.two"
    assert sorted(house.upward()) == [(two, one), (one, two)]
    assert house.circles() == [(two, one)]


def test_imports_name_the_package() -> None:
    for module in MODULES:
        for name in module.imports:
            top = name.partition(".")[0]
            assert top not in PARTS, f"{module.path}: import {name} would load the module twice; write adapt.{name}"
            assert top not in ("paper", "reality", "tests", "tools"), f"{module.path}: {top} is no part of the program"


def test_no_import_is_relative() -> None:
    for module in MODULES:
        levels = {node.level for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom)}
        assert levels <= {0}, f"{module.path}: a relative import hides which room it reaches"


def test_core_knows_no_files_no_spark_and_no_terminal() -> None:
    """But for one file: compiled kernels are kept in the user's cache folder, whoever calls them."""
    forbidden = {"pyspark", "py4j", "rich", "typer", "pathlib", "os", "io", "shutil", "tempfile", "time", "subprocess"}
    for module in CORE:
        found = {name.split(".")[0] for name in module.imports} & forbidden
        assert not found or module.name == "adapt.core.kernel_cache", f"{module.path} imports {found}"


def test_core_reads_no_clock_and_takes_its_randomness() -> None:
    for module in CORE:
        assert "random" not in module.imports, f"{module.path}: randomness comes in as a numpy Generator"
        calls = [node.func for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
        called = {function.id for function in calls if isinstance(function, ast.Name)}
        assert "hash" not in called, f"{module.path}: the built-in hash differs from process to process"


def test_help_loads_nothing_heavy() -> None:
    heavy = ("pyspark", "numba", "numpy", "pyarrow", "pandas", "jinja2", "vl_convert", "mmh3")
    code = f"import sys, adapt.cli.main as m; m.command_tree(); print(*[n for n in {heavy!r} if n in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


def test_the_package_itself_loads_nothing_until_a_name_is_used() -> None:
    code = "import sys, adapt; print(*[name for name in sys.modules if name.startswith('adapt.')]); adapt.__version__"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["adapt.notebook"]


def test_every_public_name_is_where_the_package_says() -> None:
    for name in adapt.__all__:
        assert getattr(adapt, name) is not None
    with pytest.raises(AttributeError, match="available: AdaptError"):
        _ = adapt.frequenzies


def test_notebooks_know_where_tables_are_made() -> None:
    for (module, name), home in notebook.RENDERINGS.items():
        assert isinstance(getattr(import_module(module), name), type)
        where, _, function = home.partition(":")
        assert callable(getattr(import_module(where), function))


def test_the_package_list_equals_the_folders() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    folders = {module.path.parent.parts for module in MODULES}
    assert listed == {".".join(["adapt", *(parts[1:] if parts[0] == "api" else parts)]) for parts in folders}


def test_every_module_says_what_it_is() -> None:
    for module in MODULES:
        assert ast.get_docstring(module.tree), f"{module.path} has no docstring"


def test_nothing_is_ever_unpickled() -> None:
    for module in MODULES:
        found = {name.split(".")[0] for name in module.imports} & {"pickle", "marshal", "shelve", "joblib", "dill"}
        assert not found, f"{module.path} imports {found}"
