"""`adapt advise placement`: a network file rewritten in place, rates from a CSV, wrong usage."""

import json

import pytest

from adapt.core.fit.network.network_file import read_network
from tests.core.fit.large_networks import large_network, text_of


@pytest.fixture
def network(tmp_path, monkeypatch):
    """A network file of 8 nodes in the current folder."""
    monkeypatch.chdir(tmp_path)
    made = large_network(1, nodes=8)
    (tmp_path / "net.toml").write_text(f"# our shop\n{text_of(made)}")
    return made


def test_the_file_is_written_with_new_nodes_and_nothing_else(adapt, network, tmp_path):
    told = adapt.done(
        *("advise", "placement", "net.toml", "--max-inputs", 4, "--tries", 60, "-o", "placed.toml", "--format", "json")
    )
    document = json.loads(told.out)
    before, after = document["placements"]
    assert after["score"] > before["score"]
    assert (after["inputs"], after["faults"]) == (4, 0)
    assert before["inputs"] == len(network.inputs)
    moves = {row["operator"]: row["to"] for row in document["moves"]}
    placed = read_network((tmp_path / "placed.toml").read_text()).network
    for operator, first in zip(placed.operators, network.operators, strict=True):
        assert operator.node == moves.get(first.name, first.node)
    old, new = ((tmp_path / name).read_text().splitlines() for name in ("net.toml", "placed.toml"))
    changed = [one for one, other in zip(old, new, strict=True) if one != other]
    assert len(changed) == len(moves)
    assert all(line.startswith("node = ") for line in changed)
    again = json.loads(adapt.done("advise", "placement", "placed.toml", "--tries", 0, "--format", "json").out)
    assert again["placements"][0]["score"] == pytest.approx(after["score"])


def test_rates_come_from_a_file(adapt, network, tmp_path):
    names = [each.name for each in network.inputs]
    rows = ["1," * (len(names) - 1) + "1", "2," * (len(names) - 1) + "2"]
    (tmp_path / "rates.csv").write_text("\n".join([",".join(names), *rows]))
    line = ("advise", "placement", "net.toml", "--rates", "rates.csv", "--tries", 30)
    document = json.loads(adapt.done(*line, "--format", "json").out)
    assert document["placements"][1]["of_bound"] == pytest.approx(1), "little load: nothing is shed"
    assert "Move" in adapt.done(*line).out


def test_wrong_usage_names_its_remedy(adapt, network, tmp_path):
    line = ("advise", "placement", "net.toml", "--tries", 1)
    assert "'q0.pars0' to fix does not exist; did you mean 'q0.parse0'?" in adapt.refused(
        3, *line, "--fixed", "q0.pars0"
    )
    assert "--loss must be at least 0 and below 1 (got 1.5)" in adapt.refused(2, *line, "--loss", "150%")
    (tmp_path / "none.toml").write_text((tmp_path / "net.toml").read_text().replace("\nrate = ", "\nscale = "))
    told = adapt.refused(3, "advise", "placement", "none.toml")
    assert "input 'q0.in0' has no rate; add rate to the network file, or give --rates" in told
