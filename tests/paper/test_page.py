"""The page of claims: what it judges, keeps and measures again."""

import json
import math
import re
from html.parser import HTMLParser
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper.__main__ import PAPERS, main
from paper.claims import (
    Range,
    Verdict,
    above,
    below,
    between,
    equal,
    printed,
    similar,
    verdict,
)
from paper.esj.contents import esj
from paper.esj.scope import Scope as EsjScope
from paper.estimates import Estimate
from paper.experiments import Kept
from paper.fit.contents import fit
from paper.fit.scope import Scope as FitScope
from paper.flux.contents import flux
from paper.flux.scope import Scope as FluxScope
from paper.ordered.contents import ordered
from paper.ordered.scope import Scope as OrderedScope
from paper.page import MOST_BYTES
from paper.partitioning.contents import partitioning
from paper.partitioning.scope import Scope
from paper.spread import measure_missing

SECTIONS = (
    "All verdicts",
    "Partitioning functions: claims and verdicts",
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
    "Beyond the paper",
    "Flux: claims and verdicts",
    "Figure 3: short-term imbalance",
    "Figure 6: load on one worker",
    "Figure 7: load on several workers",
    "Figure 8: thrashing",
    "Figures 9 and 10",
    "Section 6.2",
    "Section 6.3",
    "Beyond the paper: load",
    "Beyond the paper: two stages",
    "Beyond the paper: crashes",
    "FIT: claims and verdicts",
    "Table 1: an example",
    "Figure 7: local plans",
    "Section 6.2.1: where the cut fails",
    "Figure 9: networks",
    "Figure 10: plan generation",
    "Figures 11 and 12: provision level",
    "Figure 13: fan-out",
    "Figure 14 and Table 3: inputs",
    "Figure 15: messages of D-FIT",
    "Beyond the paper: fairness, links, any network",
    "ESJ: claims and verdicts",
    "Initial deployment",
    "Adaptive load shedding",
    "Scaling",
    "Ordered streams: claims and verdicts",
    "Figure 8: scheduling heuristics",
    "Figure 8 by kappa",
    "Figure 8: settings that the paper does not give",
    "Figure 9: uneven partitions",
    "Figure 10: latency",
    "Figure 11: queues under queries",
    "Figure 12: light operators",
    "Figure 13: operators of high selectivity",
    "Figure 14: reordering under queries",
    "Section 3.2: blocked workers",
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
    "redist and scan are indistinguishable",
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
    "About 50 keys are pinned",
    "between 1 and 500 keys",
    "LQL pins as many keys",
    "grow faster and faster with the skew",
    "grow linearly with the channels",
    "less than 0.05 s",
    "around 10 s",
    "slightly above 0.5 s",
    "as good to build from as true",
    "processes 6.9e5 tuples per second",
    "costs about half of the throughput",
    "Flux is above Exchange",
    "approaches the undisturbed stage",
    "about 4 s before load",
    "after 32 partitions have left",
    "ends near its full rate",
    "drops once a single worker is loaded",
    "along a straight line",
    "moves nothing where all workers are alike",
    "has half of the throughput of the static stage",
    "At 250 ms Flux passes",
    "about 14 s after the memory is gone",
    "no later than without",
    "at its full rate",
    "that of a tuple in memory",
    "latency is 2.4e5 us",
    "increases exponentially once",
    "hybrid policy outperforms",
    "at least twice as fast",
    "within 4 % of the capacity bound",
    "95 % of the throughput of the best delta_min: load on one worker",
    "95 % of the throughput of the best delta_min: drifting keys",
    "reach 85 % of the bottleneck bound",
    "several moves, joint, settle",
    "no tuple is lost or repeated when a worker dies",
    *(f"Plan {number} of Table 1" for number in range(5)),
    "keeps a fifth of the first input",
    "keeps two fifths of the second input",
    "gives 3/5 of a tuple",
    "the best local plan is plan 2",
    "local plans give a throughput of 0.28",
    "60 % of the lower branch is shed",
    "at the input alone takes 37.5 %",
    "at the input alone gives 0.25",
    "a rate of 1/8 nothing",
    "a rate of 1/3",
    "first input is 1/3 globally",
    "paper's cut: no plan loses more than 10 % (2 inputs, parallel)",
    "guaranteed: no plan loses more than 10 % (2 inputs, crossed)",
    "total cost is the same on each server",
    "shorter time than Solver (parallel)",
    "more sensitive to the query load distribution than C-FIT (crossed)",
    "Solver: no plan loses more than 5 % (crossed)",
    "around 1.44 %",
    "in much shorter time where chains differ",
    "Solver-W are similarly sensitive",
    "As lambda increases",
    "As imbalance increases",
    "better a system is provisioned",
    "degree of sharing increases",
    "At a fan-out of 2",
    "At higher fan-outs",
    "converges much later with 8 inputs than with 4",
    "needs about an hour",
    "has 46 rows",
    "has 984 rows",
    "has 42,472 rows",
    "With 8 inputs a row takes 184 bytes",
    "As query load is reduced",
    "rows decreases in a dramatic way",
    "more a selectivity changes",
    "smaller the distance",
    "moved from parent to child",
    "below 8 %",
    "Weights of 1 and 3 give a score of 3/2",
    "quarter of the first query",
    "half a tuple per second lets that much",
    "gives 7/27",
    "CT scales almost linearly up to 16 cores for Q1",
    "CT has the best throughput on Q2",
    "LP performs as well as CT on Q15",
    "ET and QST do not perform as well as CT or LP on Q1",
    "LP has the lowest latency on Q1",
    "at least 10 times that of CT on Q2",
    "with every kappa above 0",
    "CT as printed has at least 50 times",
    "the partitioned queue drops sharply",
    "at least 4 times the throughput",
    "queues are within 10 %",
    "at most 1.5 times the cost",
    "at least 20 times the cost",
    "hybrid queue has the higher throughput on Q1",
    "difference in throughput is unclear on Q15",
    "scales better at 10 us, constants as measured",
    "rises more steeply with the lock",
    "at least 1.5 times the throughput",
    "50 outputs per tuple, at the paper's costs",
    "50 outputs per tuple, with a light second operator",
    "Non-blocking reordering has the higher throughput on Q2",
    "workers are rarely blocked",
)
"""Words that identify every claim of the papers."""

AROUND = ("Contents", "All verdicts", "How this was made")
"""Headings of the page outside the papers."""


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
    assert html.count('<svg xmlns="http://www.w3.org/2000/svg" class="chart"') > 70
    papers = [heading for heading in headings if heading.endswith("claims and verdicts")]
    assert len(papers) == len(PAPERS)
    assert html.count('<li class="part">') == len(headings) - len(papers) - len(AROUND)
    assert set(AROUND) < set(headings)


def test_the_page_is_self_contained(folder):
    class Addresses(HTMLParser):
        found: ClassVar[list[str]] = []

        def handle_starttag(self, tag, attributes):
            self.found += [value for name, value in attributes if name in ("src", "href") and value]

    parser = Addresses()
    parser.feed((folder / "index.html").read_text())
    assert all(address.startswith(("#", "data:")) for address in parser.found)


def test_every_claim_of_the_papers_is_judged(data):
    texts = [claim["claim"] for claim in data["claims"]]
    for words in SPECIFIED:
        assert any(words in text for text in texts), words
    assert len(set(texts)) == len(texts)


def test_compiled_constructions_give_the_mapping_of_their_literal_forms(data):
    (table,) = [table for table in data["tables"] if table["title"] == "Compiled against literal"]
    assert len(table["rows"]) >= 4
    assert all(row["mapping identical"] for row in table["rows"])


def test_a_second_run_measures_nothing(folder):
    def no_spark():
        raise AssertionError("there is nothing for Spark to do")

    def no_progress(label: str, _done: int, _total: int) -> None:
        raise AssertionError(f"{label} is measured again")

    papers = {
        "partitioning": partitioning(Scope.quick().with_seeds(2)),
        "flux": flux(FluxScope.quick().with_seeds(2)),
        "fit": fit(FitScope.quick().with_seeds(2)),
        "esj": esj(EsjScope.quick().with_seeds(2)),
        "ordered": ordered(OrderedScope.quick().with_seeds(2)),
    }
    assert set(papers) == set(PAPERS)
    for name, paper in papers.items():
        kept = Kept(folder / "runs", PAPERS[name].program())
        assert measure_missing(paper.experiments(), kept, no_spark, no_progress) == 0
    assert len(list((folder / "runs").iterdir())) > 200


samples = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


def of(*values: float) -> Estimate:
    return Estimate.of(values)


def test_the_interval_of_the_mean_is_students():
    # Five numbers: t(0.975, 4) = 2.776, standard deviation sqrt(2.5).
    estimate = of(1, 2, 3, 4, 5)
    assert (estimate.mean, estimate.runs) == (3, 5)
    assert estimate.reach == pytest.approx(2.776 * math.sqrt(2.5 / 5), rel=1e-3)
    assert (estimate.low, estimate.high) == (3 - estimate.reach, 3 + estimate.reach)


@given(samples)
def test_the_mean_is_in_its_interval_and_that_in_the_one_of_fewer_runs(values):
    estimate = Estimate.of(values)
    low, high = estimate.of_others(1)
    assert low <= estimate.low <= estimate.mean <= estimate.high <= high


def test_intervals_cover_the_truth_as_often_as_they_say():
    random = np.random.default_rng(1)
    covered = sum(
        abs(Estimate.of(random.normal(0, 1, 20)).mean) <= e.reach
        for e in (Estimate.of(random.normal(0, 1, 20)) for _ in range(1000))
    )
    assert 0.9 < covered / 1000 < 0.99


@pytest.mark.parametrize(
    ("claimed", "ours", "expected"),
    [
        # numbers: five of our runs together may well give 1.32
        (printed("1.32"), of(1.2, 1.3, 1.4, 1.5), Verdict.HOLDS),
        (printed("1.32"), of(1.5, 1.5, 1.5, 1.51), Verdict.FAILS),
        (printed("1.5", departs=1), of(1.2, 1.21, 1.22), Verdict.DIRECTION),
        (printed("1.5", departs=1), of(0.8, 0.81, 0.82), Verdict.FAILS),
        (printed("0.5", departs=1), of(0.8, 0.81, 0.82), Verdict.DIRECTION),
        # so widely spread that five runs may give 1.5, but our mean is on the other side of what the claim departs from
        (printed("1.5", departs=1), of(0.1, 0.9, 1.7), Verdict.FAILS),
        (printed("1.5", departs=1), of(0.4, 1.1, 1.9), Verdict.HOLDS),
        (between(30, 40), of(33.0), Verdict.HOLDS),
        (between(30, 40), of(41.0), Verdict.FAILS),
        (between(0, 0), of(0.0), Verdict.HOLDS),
        # orders: proved, leaning, refuted
        (above(0), of(0.1, 0.2, 0.3), Verdict.UNCLEAR),
        (above(0), of(0.19, 0.2, 0.21), Verdict.HOLDS),
        (above(0), of(-0.1, -0.2, 0.2), Verdict.FAILS),
        (below(1), of(0.9, 0.91, 0.92), Verdict.HOLDS),
        (below(1), of(0.9, 1.05), Verdict.UNCLEAR),
        # a direction needs a margin beyond the spread
        (above(1), of(1.0036), Verdict.UNCLEAR),
        (above(1), of(1.035, 1.036), Verdict.UNCLEAR),
        (above(1), of(1.07, 1.0701), Verdict.HOLDS),
        (below(1), of(0.96), Verdict.UNCLEAR),
        (below(1), of(0.9499), Verdict.HOLDS),
        (above(0), of(0.009), Verdict.UNCLEAR),
        (above(0), of(0.011), Verdict.HOLDS),
        (above(1.5, departs=1), of(1.04), Verdict.UNCLEAR),
        (printed("1.5", departs=1), of(1.04, 1.041), Verdict.UNCLEAR),
        (printed("1.02", departs=1), of(1.02, 1.021), Verdict.HOLDS),
        # words for no difference have one range each, and the spread excuses nothing
        (similar(), of(1.49, 1.0), Verdict.FAILS),
        (similar(), of(1.34), Verdict.FAILS),
        (similar(), of(1.1, 0.9, 1.3), Verdict.UNCLEAR),
        (similar(), of(1.1, 1.11), Verdict.HOLDS),
        (equal(), of(1.04), Verdict.HOLDS),
        (equal(), of(0.94), Verdict.FAILS),
        (above(3), of(2.0, 2.01), Verdict.FAILS),
        (above(3, departs=1), of(2.0, 2.01), Verdict.DIRECTION),
    ],
)
def test_the_rule(claimed, ours, expected):
    assert verdict(claimed, ours) is expected


@given(samples, st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_a_claim_of_our_own_mean_holds(values, low, width):
    mean = Estimate.of(values).mean
    assert verdict(Range(mean - width, mean + width), Estimate.of(values)) is Verdict.HOLDS
    assert (verdict(above(low), Estimate.of(values)) is Verdict.FAILS) == (mean <= low)
