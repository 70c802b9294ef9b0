"""How likely rates are, said in a file or by the rates of the network."""

import numpy as np
import pytest

from adapt.core.errors import BadInput
from adapt.core.fit.network.network_file import read_network
from adapt.traces.replay.files.workloads import open_workload

NETWORK = """
[[node]]
name = "edge"
capacity = 1.0
[[input]]
name = "clicks"
rate = 5.0
[[input]]
name = "sales"
rate = 2.5
[[operator]]
name = "both"
node = "edge"
kind = "union"
inputs = ["clicks", "sales"]
cost = 0.1
selectivity = 1.0
[[output]]
name = "all"
from = "both"
"""


@pytest.fixture
def network():
    return read_network(NETWORK).network


def test_rates_that_were_seen_stand_in_the_order_of_the_network(tmp_path, network):
    (tmp_path / "seen.csv").write_text("sales,clicks\n1,10\n2,20\n2,30\n3,40\n")
    opened = open_workload(str(tmp_path / "seen.csv"), network)
    boxes = np.array([[0.0, 0.0], [15.0, 0.0], [15.0, 2.5]]), np.array([[100.0, 100.0], [35.0, 100.0], [100.0, 9.0]])
    assert opened.workload.probability(*boxes).tolist() == [1.0, 0.5, 0.25]
    assert opened.source["name"] == "seen.csv"
    assert len(opened.source["sha256"]) == 64


def test_exponential_rates_have_those_of_the_network_as_means(network):
    opened = open_workload("exponential", network)
    low, high = np.array([[5.0, 2.5]]), np.array([[np.inf, np.inf]])
    assert opened.workload.probability(low, high) == pytest.approx([np.exp(-2)])
    assert opened.source == {"exponential": {"clicks": 5.0, "sales": 2.5}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("clicks\n1\n", "column 'sales' is missing"),
        ("clicks,sale\n1,1\n", "column 'sale' is not an input of the network; did you mean 'sales'"),
        ("clicks,sales\n1,2\n1,-3\n", "row 2: 'sales' must be at least 0 tuples/s \\(got -3\\)"),
        ("clicks,sales\n1,nan\n", "row 1: 'sales' must be .* \\(got nan\\)"),
        ("clicks,sales\n1,many\n", "column 'sales' must hold numbers"),
        ("clicks,sales\n", "a header but no rates"),
        ("clicks,sales\n1,2,3\n", "is not a CSV of rates"),
        ("", "is not a CSV of rates"),
    ],
)
def test_a_file_that_holds_no_rates_is_refused(tmp_path, network, text, told):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(BadInput, match=told):
        open_workload(str(tmp_path / "bad.csv"), network)


def test_what_is_not_there_is_refused(tmp_path, network):
    with pytest.raises(BadInput, match=r"none\.csv: cannot be read"):
        open_workload(str(tmp_path / "none.csv"), network)
    unstated = read_network(NETWORK.replace("rate = 2.5", "")).network
    with pytest.raises(BadInput, match="input 'sales' needs a rate in the network file"):
        open_workload("exponential", unstated)
