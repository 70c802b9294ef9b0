"""The rehearsal of the page, with two seeds: every claim judged, nothing fetched, and nothing measured twice."""

import csv
import json
import re
from html.parser import HTMLParser
from typing import ClassVar

import pytest

from adapt.core.report.page import MOST_BYTES
from paper.__main__ import main, measuring_program
from paper.claims import Verdict
from paper.experiments import Kept
from paper.partitioning.contents import partitioning
from paper.partitioning.scope import Scope
from paper.spread import measure_missing

SECTIONS = (
    "Figure 1",
    "Figure 3",
    "Figure 4",
    "Figure 5",
    "Figure 6",
    "Figure 7",
    "Figure 8",
    "Table 1",
    "Figures 9 to 11",
    "Figures 12 to 14",
    "Equations 7 and 8",
    "Past the paper",
)

SPECIFIED = (
    "Twelve balances",
    "Uniform hashing migrates more than 8",
    "Uniform hashing reaches 22",
    "Uniform hashing migrates 6.5 to 7.5",
    "Consistent hashing's migration is below 1",
    "LLL: b of consistent hashing",
    "LLL: b of uniform hashing",
    "LLL: b of scan",
    "LLL: m of redist",
    "LLL: b of readj",
    "LLL: m of readj",
    "redist and scan cannot be told apart",
    "is in the 30s",
    "rises once z passes 0.8",
    "first to pass b = 1",
    "up to 50 % above readj",
    "At low skew uniform hashing is the best",
    "readj's b is 1 to 2 % above",
    "A lower sigma lowers b",
    "A lower sigma raises m",
    "readj cannot keep b low",
    "b jumps between sigma 0.25 and 0.5",
    "passes b = 2 at 32",
    "almost flat, around 1.15",
    "Migration of readj grows",
    "scan's migration passes 3",
    "readj is worse balanced than redist above 20",
    "up to 36 % above readj",
    "U_A migrates most",
    "U_APLM migrates less than U_APM",
    "up to 3 times better balanced",
    "U_ATM migrates 35 to 40 % less",
    "U_APLM migrates 30 to 35 % more",
    "Larger domains are easier",
    "The fall of b flattens",
    "No scheme of the paper reaches b = 1",
    "falls with the domain",
    "The lossy counter holds about 2,500",
    "The lossy counter holds about 50,000",
    "About 50 keys are mapped",
    "between 1 and 500 keys",
    "LQL maps as many keys",
    "grow faster and faster with the skew",
    "grow linearly with the channels",
    "less than 0.05 s",
    "around 10 s",
    "slightly above 0.5 s",
    "as good to build from as true",
)
"""What every claim of the specification is recognised by."""


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("paper")
    assert main(["--quick", "--seeds", "2", "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def data(folder):
    return json.loads((folder / "paper.json").read_text())


def test_the_page_has_a_section_for_every_figure_and_fits(folder):
    html = (folder / "index.html").read_text()
    headings = re.findall(r"<h2>([^<]+)</h2>", html)
    for section in SECTIONS:
        assert any(heading.startswith(section) for heading in headings), section
    assert "rehearsal" in html
    assert len(html.encode()) < MOST_BYTES
    assert "Left out to keep the page small" not in html
    assert html.count('<svg xmlns="http://www.w3.org/2000/svg" class="chart"') > 50


def test_the_page_is_self_contained(folder):
    class Addresses(HTMLParser):
        found: ClassVar[list[str]] = []

        def handle_starttag(self, tag, attributes):
            assert tag != "script"
            self.found += [value for name, value in attributes if name in ("src", "href") and value]

    parser = Addresses()
    parser.feed((folder / "index.html").read_text())
    assert all(address.startswith(("#", "data:")) for address in parser.found)


def test_every_claim_of_the_specification_is_judged(data):
    texts = [claim["claim"] for claim in data["claims"]]
    for words in SPECIFIED:
        assert any(words in text for text in texts), words
    assert len(set(texts)) == len(texts)


def test_every_verdict_comes_with_a_number_and_an_interval(data):
    for claim in data["claims"]:
        assert claim["low"] <= claim["mean"] <= claim["high"], claim
        assert claim["verdict"] in set(Verdict)
        assert claim["measure"]


def test_compiled_constructions_give_the_mapping_of_their_literal_forms(data):
    (table,) = [table for table in data["tables"] if table["title"] == "Compiled against literal"]
    assert len(table["rows"]) >= 4
    assert all(row["mapping identical"] for row in table["rows"])


def test_numbers_are_there_as_csv_too(folder, data):
    with (folder / "claims.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["claim"] for row in rows] == [claim["claim"] for claim in data["claims"]]
    assert len(list((folder / "tables").iterdir())) == len(data["tables"])


def test_a_second_run_measures_nothing(folder):
    def no_spark():
        raise AssertionError("there is nothing for Spark to do")

    def no_progress(label: str, _done: int, _total: int) -> None:
        raise AssertionError(f"{label} is measured again")

    kept = Kept(folder / "runs", measuring_program())
    assert measure_missing(partitioning(Scope.quick().with_seeds(2)).experiments(), kept, no_spark, no_progress) == 0
    assert len(list((folder / "runs").iterdir())) > 100


def test_what_fewer_seeds_measure_is_a_part_of_the_whole():
    few, all_of_them = (partitioning(scope).experiments() for scope in (Scope().with_seeds(4), Scope()))
    assert set(few) <= set(all_of_them)
    assert 4 * len(set(few)) < 2 * len(set(all_of_them))


def test_one_seed_has_no_interval(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--seeds", "1"])
    assert left.value.code == 2
    assert "from 2 up" in capsys.readouterr().err
