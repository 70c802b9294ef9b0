"""The page of theory explains every number, and every equation that it names is where it says."""

import re
from importlib import import_module
from itertools import chain, pairwise

import pytest

from adapt.core.mechanisms.scenarios import SCENARIOS
from adapt.core.metrics import METRICS, Of
from tests.docs.pages import text_of

PLACED = [name for name, metric in METRICS.items() if Of.PLAN in metric.places and name != "channels"]

EQUATIONS = re.findall(r"^\| ([^|]+) \|[^|]*\|[^|]*\| `([\w.]+)` \|$", text_of("docs/theory.md"), re.MULTILINE)
"""Source, and where below `adapt.core` it is computed."""

PAPERS = ("Partitioning", "Flux", "FIT", "ESJ", "Ordered streams")

_CITED = re.compile(
    r"\b(Eq|Algorithm|[Ss]ection|Figure|Table|Definition)s?\.? (\d+(?:\.\d+)*(?:(?:,| to| and) \d+(?:\.\d+)*)*)"
)


@pytest.mark.parametrize("name", PLACED)
def test_every_number_of_a_placement_is_explained(name):
    assert f"`{name}`" in text_of("docs/theory.md")


def test_mechanisms_that_are_advised_exist():
    named = re.findall(r"`((?:static|split|flux|elastic|shed|rebuild)-?[a-z-]*)`", text_of("docs/which.md"))
    assert named
    assert set(named) <= {scenario.name for scenario in SCENARIOS}


def cited(text):
    """What a text cites: each equation, algorithm, section, ... by itself, as in ("eq", "17")."""
    found = {("adaptive", "workload")} if "adaptive workload" in text else set()
    for kind, numbers in _CITED.findall(" ".join(text.split())):
        named = re.findall(r"(to )?(\d+(?:\.\d+)*)", numbers)
        found |= {(kind.lower(), number) for _, number in named}
        for (_, first), (to, last) in pairwise(named):
            if to:
                head, begin = last.rpartition(".")[:2], int(first.rpartition(".")[2])
                found |= {(kind.lower(), "".join(head) + str(at)) for at in range(begin, int(last.split(".")[-1]))}
    return found


def documents_of(path):
    """The docstrings of a name below `adapt.core`, of its class, and of its module."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            module = import_module(".".join(("adapt.core", *parts[:length])))
        except ModuleNotFoundError:
            continue
        found = [module]
        for name in parts[length:]:
            found.append(getattr(found[-1], name))
        return [each.__doc__ or "" for each in found]
    raise ModuleNotFoundError(path)


def test_all_papers_have_their_equations():
    assert {paper for source, _ in EQUATIONS for paper in PAPERS if source.startswith(paper)} == set(PAPERS)
    equations = set(chain.from_iterable(cited(source) for source, _ in EQUATIONS if source.startswith("Partitioning")))
    assert {("eq", str(number)) for number in range(1, 23)} - equations == {("eq", "7"), ("eq", "8"), ("eq", "14")}


@pytest.mark.parametrize(("source", "path"), EQUATIONS, ids=[f"{source}: {path}" for source, path in EQUATIONS])
def test_every_equation_is_computed_where_the_page_says(source, path):
    assert cited(source)
    assert cited(source) <= set(chain.from_iterable(map(cited, documents_of(path))))
