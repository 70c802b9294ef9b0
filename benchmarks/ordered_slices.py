"""Time slice against throughput and latency, model beside threads.

    python -m benchmarks.ordered_slices --out build/slices.html

Measures the costs of the engine on this machine, then runs a query of the ordered paper by time slice and by window of
`ct`, with one and two threads and in the model. Prints the tables, and draws them with --out.

Claim: for every slice and window, the model's throughput with one worker is within 15 % of that of a thread. With two,
that needs a machine without other processes.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path

from adapt.cli.terminal.formats import markdown_text
from adapt.core.report.page import Page, render_page
from adapt.traces.store.atomic import replace_whole
from paper.claims import Verdict
from paper.experiments import Data, Experiment
from paper.ordered.figures import slices
from paper.ordered.scope import Scope
from paper.page import MOST_BYTES, MOST_CHARTS


def main() -> int:
    """Measure, print and draw; 0 if the claim is met."""
    parser = ArgumentParser("benchmarks.ordered_slices", description="Time slice against throughput and latency.")
    parser.add_argument("--out", type=Path, help="page for the charts")
    parser.add_argument("--costs", type=Path, help="file for the measured costs, for adapt replay ordered --costs")
    parser.add_argument("--quick", action="store_true", help="few rows and slices, to rehearse")
    options = parser.parse_args()
    scope, results = Scope.quick() if options.quick else Scope(), dict[Experiment, Data]()
    for experiment in slices.wanted(scope):
        for needed in (*experiment.needs, experiment):
            if needed not in results:
                print(needed.label, file=sys.stderr, flush=True)
                results[needed] = needed.measure([results[each] for each in needed.needs])
    shown = slices.shown(scope, results)
    print(markdown_text(shown.section.tables))
    if options.costs is not None:
        replace_whole(options.costs, results[slices.costs_of(scope)].encode())
    if options.out is not None:
        page = Page("Time slice and window", [shown.section], [{"rows": scope.rows, "repeats": scope.repeats}])
        replace_whole(options.out, render_page(page, MOST_BYTES, MOST_CHARTS).encode())
    for one in shown.claims:
        print(f"{one.claim.text}: {one.claim.measure} is {one.ours.mean:.3g}: {one.verdict}")
    return 0 if shown.claims[-2].verdict is Verdict.HOLDS else 1


if __name__ == "__main__":
    sys.exit(main())
