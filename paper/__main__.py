"""`python -m paper`: measure the papers' claims and write one page of them."""

import os
import platform
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapt.core.errors import AdaptError
from adapt.traces.spark.session import SparkOptions, spark_session
from paper.esj.contents import esj
from paper.esj.scope import Scope as EsjScope
from paper.experiments import Kept, program_version
from paper.fit.contents import fit
from paper.fit.scope import Scope as FitScope
from paper.flux.contents import flux
from paper.flux.scope import Scope as FluxScope
from paper.ordered.contents import ordered
from paper.ordered.scope import Scope as OrderedScope
from paper.page import write_page
from paper.partitioning.contents import partitioning
from paper.partitioning.scope import Scope
from paper.report import Paper
from paper.spread import ROOT, measure_missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HUGE = (10**8, 5)


@dataclass(frozen=True, slots=True)
class Known:
    """A paper that can be measured.

    Attributes:
        measured_by: Folders whose files determine the measurements; changes elsewhere keep stored results valid.
        made: Creates the paper for the given options.
    """

    measured_by: tuple[str, ...]
    made: Callable[[Namespace], Paper[Any]]

    def program(self) -> str:
        """Hash of everything that determines the measurements."""
        return program_version(ROOT, self.measured_by, NOT_BY)


NOT_BY = ("figures",)
"""Subfolders that only affect the presentation."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and write the page; returns the exit code."""
    options = _parsed(arguments)
    names = [options.only] if options.only else list(PAPERS)

    def session() -> "SparkSession":
        return spark_session(SparkOptions(options.master))

    try:
        shown = []
        for name in names:
            paper, kept = PAPERS[name].made(options), Kept(options.out / "runs", PAPERS[name].program())
            measured = measure_missing(paper.experiments(), kept, session, _tell)
            print(f"{paper.name}: {measured} experiments measured, the others were stored already", file=sys.stderr)
            shown.append((paper, paper.shown(kept)))
        print(write_page(options.out, shown, _made(), options.quick))
    except AdaptError as error:
        print(f"paper: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _partitioning(options: Namespace) -> Paper[Any]:
    scope = Scope.quick() if options.quick else Scope()
    if options.huge:
        scope = replace(scope, domains=(*scope.domains, _HUGE))
    return partitioning(scope.with_seeds(options.seeds) if options.seeds else scope)


def _flux(options: Namespace) -> Paper[Any]:
    scope = FluxScope.quick() if options.quick else FluxScope()
    return flux(scope.with_seeds(options.seeds) if options.seeds else scope)


def _fit(options: Namespace) -> Paper[Any]:
    scope = FitScope.quick() if options.quick else FitScope()
    return fit(scope.with_seeds(options.seeds) if options.seeds else scope)


def _esj(options: Namespace) -> Paper[Any]:
    scope = EsjScope.quick() if options.quick else EsjScope()
    return esj(scope.with_seeds(options.seeds) if options.seeds else scope)


def _ordered(options: Namespace) -> Paper[Any]:
    scope = OrderedScope.quick() if options.quick else OrderedScope()
    return ordered(scope.with_seeds(options.seeds) if options.seeds else scope)


PAPERS = {
    "partitioning": Known(
        ("core/counting", "core/keys", "core/partitioning", "traces/store", "paper/partitioning"), _partitioning
    ),
    "flux": Known(("core/flux", "core/stage", "paper/flux"), _flux),
    "fit": Known(("core/fit", "paper/fit"), _fit),
    "esj": Known(("core/elastic", "paper/esj"), _esj),
    "ordered": Known(("core/ordered", "core/synthetic", "traces/generators", "paper/ordered"), _ordered),
}
"""Papers by their names for `--only`."""


def _parsed(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser("paper", description="Measure the papers' claims and write one page of them.")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "paper", help="folder for the page and the stored runs"
    )
    parser.add_argument("--only", choices=PAPERS, help="measure only this paper")
    parser.add_argument(
        "--quick", action="store_true", help="a quick rehearsal: few seeds, small domains, stages and networks"
    )
    parser.add_argument(
        "--seeds", type=_seeds, help="largest number of seeds, at least 2, for a first look at everything"
    )
    parser.add_argument(
        "--huge", action="store_true", help="also measure a domain of 100 million keys, with five seeds"
    )
    parser.add_argument("--master", default="local[*]", help="Spark master")
    return parser.parse_args(arguments)


def _seeds(text: str) -> int:
    """Parse a number of seeds, at least 2: one seed has no interval."""
    if not text.isdecimal() or int(text) < 2:
        raise ArgumentTypeError(f"must be an integer of at least 2 (got {text!r})")
    return int(text)


def _tell(label: str, done: int, total: int) -> None:
    print(f"[{done}/{total}] {label}", file=sys.stderr, flush=True)


def _made() -> dict[str, object]:
    libraries = ("numpy", "numba", "pyarrow", "pyspark")
    return {
        "command": "python -m paper",
        "python": platform.python_version(),
        **{library: version(library) for library in libraries},
        "adapt": version("adapt-streams"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


if __name__ == "__main__":
    sys.exit(main())
