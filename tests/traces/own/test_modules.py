"""Users' classes are found in the current folder and by entry points, with a hash of their source."""

import sys
from types import SimpleNamespace

import pytest

from adapt.core.errors import UsageError
from adapt.traces.own import modules
from adapt.traces.own.modules import own_codes

SOURCE = "import helping\n\nclass Mine:\n    def moves(self, view):\n        return helping.none()\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a module and one that it imports, as the current one."""
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "helping.py").write_text("def none():\n    return {}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    monkeypatch.chdir("/")
    own_codes("policy", [])  # forget the modules of this folder


def found(name="mine:Mine"):
    return own_codes("policy", [(name, {})])[0]


def test_a_class_is_found_in_the_current_folder(here):
    own = found()
    assert (own.name, own.file, own.call().moves(None)) == ("mine:Mine", str(here / "mine.py"), {})
    assert own.as_data() == {"module": "mine", "name": "Mine", "options": {}, "source": own.source}


def test_the_hash_is_that_of_the_source_and_of_what_it_imports_beside_it(here):
    first = found().source
    assert len(first) == 64
    (here / "other.py").write_text("")
    assert found().source == first
    (here / "helping.py").write_text("def none():\n    return {0: 1}\n")
    changed = found()
    assert changed.source != first
    assert changed.call().moves(None) == {0: 1}
    (here / "mine.py").write_text(SOURCE + "\nMORE = 1\n")
    assert found().source not in (first, changed.source)


def test_an_installed_module_goes_before_one_of_the_current_folder(here):
    (here / "rich.py").write_text("class Mine:\n    pass\n")
    with pytest.raises(UsageError, match=r"rich has no class or function 'Mine'.*; it is an installed module"):
        found("rich:Mine")


WRONG = {
    "nowhere:Mine": "cannot be imported (ModuleNotFoundError: No module named 'nowhere'); modules are looked up on",
    "mine:Min": "mine has no class or function 'Min'; did you mean 'Mine'?",
    "mine:helping": "mine has no class or function 'helping'",
    "broken:Mine": "the module 'broken' cannot be imported (SyntaxError: ",
    "unheard": "--policy unheard does not exist",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_there_is_said(here, name):
    (here / "broken.py").write_text("def\n")
    with pytest.raises(UsageError) as raised:
        found(name)
    assert WRONG[name] in str(raised.value)
    assert "\n" not in str(raised.value)


def test_adapt_itself_is_never_imported_anew(here):
    (here / "mine.py").write_text("import adapt.core.own_policies.view\n\nclass Mine:\n    pass\n")
    before = sys.modules["adapt.core.own.own_code"]
    found()
    assert type(found()).__module__ == before.__name__
    assert sys.modules["adapt.core.own.own_code"] is before


def test_installed_packages_offer_policies_by_name(here, monkeypatch):
    def entry_points(group):
        assert group == "adapt.policies"
        return [SimpleNamespace(name="calm", value="mine:Mine [extra]")]

    monkeypatch.setattr(modules, "entry_points", entry_points)
    monkeypatch.syspath_prepend(here)
    assert found("calm").name == "mine:Mine"
