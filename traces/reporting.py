"""Artefacts read for a report: for each what it says in sentences, tables and charts, and how it was made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from adapt.core.errors import BadInput
from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.frequencies.tables import counts_table, heaviest_table, rank_share_table
from adapt.core.frequencies.zipf_fit import zipf_table
from adapt.core.lint.finding import findings_table, lint_sentence
from adapt.core.lint.judge import judged
from adapt.core.partitioners.names import Engine
from adapt.core.partitioners.plan_tables import explicit_keys_table, load_table, plan_first_table, plan_table
from adapt.core.replay.fit_tables import planners_told, tables_of_arcs
from adapt.core.replay.run import verdict_under
from adapt.core.report.chart import Chart
from adapt.core.report.charts import (
    channel_loads,
    channels_before_after,
    comparison,
    elastic_charts,
    imbalance_per_period,
    life_lines,
    migration_per_period,
    network_charts,
    rank_frequency,
    rate_over_time,
    shedding_charts,
    skew_over_time,
    stage_charts,
    top_keys,
)
from adapt.core.report.page import Page, Section
from adapt.core.report.values import human
from adapt.core.resources.functions import Resources
from adapt.core.shedding.network_tables import NetworkLoad
from adapt.core.table import Column, Kind, Table
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.compared import at_channels, told_of
from adapt.traces.artefacts.answers import found_in
from adapt.traces.artefacts.comparisons import read_comparison
from adapt.traces.artefacts.drop_plans import KIND, read_drop_plans
from adapt.traces.artefacts.frequencies import read_frequencies
from adapt.traces.artefacts.manifest import Manifest, hash_of, read_manifest, verify
from adapt.traces.artefacts.plans import read_plan, read_plan_answer, read_plan_made
from adapt.traces.artefacts.runs import StoredRun, read_run
from adapt.traces.artefacts.trace import open_trace
from adapt.traces.artefacts.trace_tables import (
    overview,
    rank_table,
    rate_table,
    refused,
    streams_table,
    top_keys_table,
)
from adapt.traces.fit_replaying import open_network
from adapt.traces.readable import readable

SCHEMA = "adapt.report/1"


@dataclass(frozen=True, slots=True)
class Reported:
    """What is to be said of one artefact.

    Attributes:
        name: The artefact's name.
        kind: trace, frequencies, plan, comparison, run, drop-plan table or network.
        content_hash: Of what it holds.
        sentences: What there is to know, first things first.
        tables: What is shown in a terminal and on the page.
        charts: What is drawn on the page; their tables are part of the data too.
        made: How the artefact was made.
        lead: The verdict in words, its class first; nothing in artefacts without one.
        first: The tables that people need first; nothing where that is all of them.
        answer: What is told of the stream first: the verdict, its hot keys, its channels.
    """

    name: str
    kind: str
    content_hash: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]
    made: Mapping[str, Any]
    lead: tuple[str, ...] = ()
    first: tuple[Table, ...] = ()
    answer: Answer | None = None

    def as_data(self) -> dict[str, Any]:
        """The artefact's tables as JSON data, those behind charts included."""
        tables = {table.title: table for table in (*self.tables, *(chart.table for chart in self.charts))}
        return {
            "name": self.name,
            "kind": self.kind,
            "content_hash": self.content_hash,
            **({} if self.answer is None else self.answer.as_data()),
            "sentences": [*self.lead[1:], *self.sentences],
            "tables": [
                {"title": table.title, "rows": table.records(), **({"note": table.note} if table.note else {})}
                for table in tables.values()
            ],
        }


def reported(path: Path, *, check_all: bool = False) -> Reported:
    """Read one artefact for a report.

    Args:
        check_all: Check every byte of it against the SHA-256 in its manifest first.

    Raises:
        BadInput: it is none that can be reported, or damaged.
    """
    with readable(path):
        if path.is_file():
            return _network(path) if path.suffix == ".toml" else _plan(path)
        if not path.exists():
            raise BadInput(f"{path} does not exist; give what `adapt ingest`, `partition` or `replay` wrote with -o")
        manifest = read_manifest(path)
        if manifest.kind not in _KINDS:
            raise BadInput(f"{path} is a {manifest.kind}, of which there is no report")
        if check_all:
            verify(path, manifest)
        return _KINDS[manifest.kind](path, manifest)


def as_page(title: str, artefacts: Sequence[Reported]) -> Page:
    """The page of some artefacts: the verdicts first, then a section each."""
    sections = [
        Section(f"{_HEADINGS[artefact.kind]}: {artefact.name}", artefact.sentences, artefact.charts, artefact.tables)
        for artefact in artefacts
    ]
    verdicts = [_answered(artefact) for artefact in artefacts if artefact.lead]
    return Page(title, [*verdicts, *sections], [artefact.made for artefact in artefacts])


def _answered(artefact: Reported) -> Section:
    """The verdict of an artefact, with what shows it."""
    headline, *sentences = artefact.lead
    charts: list[Chart] = []
    tables: list[Table] = []
    answer = artefact.answer
    if answer is not None:
        tables = answer.tables()
        charts += [channels_before_after(table) for table in answer.channels_tables()]
        if answer.verdict is not None and answer.verdict.over_time is not None:
            over_time = next(table for table in tables if table.title == answer.verdict.over_time.table().title)
            charts.append(skew_over_time(over_time))
        if answer.hot_keys.starts_us:
            lines = answer.hot_keys.lines_table()
            charts += life_lines(lines)
            tables.append(lines)
    return Section(f"Verdict on {artefact.name}: {headline}", sentences, charts, tables)


def as_document(artefacts: Sequence[Reported]) -> dict[str, Any]:
    """The same as one JSON document."""
    return {"schema": SCHEMA, "artefacts": [artefact.as_data() for artefact in artefacts]}


def _trace(path: Path, manifest: Manifest) -> Reported:
    trace = open_trace(path)
    facts = overview(trace).records()[0]
    heaviest = top_keys_table(trace)
    share = facts["top_share"]
    sentences = [
        f"{_shown(facts['rows'], Kind.COUNT)} rows of {_shown(facts['keys'], Kind.COUNT)} keys"
        f" from {_shown(facts['first'], Kind.TIME)} to {_shown(facts['last'], Kind.TIME)}."
    ]
    if isinstance(share, float) and share > 0:
        sentences.append(
            f"The heaviest key, {heaviest.rows[0][0]}, has {_shown(share, Kind.SHARE)} of all rows:"
            f" as long as a key stays whole, more than {1 / share:.3g} channels cannot all be busy."
        )
    if facts["refused"]:
        rows = "row" if facts["refused"] == 1 else "rows"
        sentences.append(f"{_shown(facts['refused'], Kind.COUNT)} {rows} of the source did not fit; kept aside.")
    findings = judged(trace.profile)
    sentences.append(lint_sentence(findings, path.name))
    streams = streams_table(trace)
    tables = [
        overview(trace),
        *([findings_table(findings)] if findings else []),
        *([refused(trace)] if facts["refused"] else []),
        *([streams] if streams else []),
        heaviest,
    ]
    charts = (rate_over_time(rate_table(trace)), rank_frequency(rank_table(trace)), top_keys(heaviest))
    return _reported(path, manifest, sentences, tables, charts)


def _frequencies(path: Path, manifest: Manifest) -> Reported:
    frequencies, _ = read_frequencies(path)
    counts, heaviest, law = counts_table(frequencies), heaviest_table(frequencies), zipf_table(frequencies)
    exact = "exactly" if frequencies.exact else f"to within {frequencies.epsilon:.3g} of the total"
    about = "" if frequencies.exact or not frequencies.complete_above else "About "
    sentences = [f"{about}{frequencies.distinct:,} keys, weighed by {frequencies.weight}, counted {exact}.", law.note]
    charts = (rank_frequency(rank_share_table(frequencies)), top_keys(heaviest))
    answer = found_in(manifest.summary, str(path)) or _answer_on(frequencies)
    hot = answer.hot_keys.table()
    told = _reported(path, manifest, sentences, [hot, counts, law, heaviest], charts)
    return replace(told, lead=tuple(answer.lead), first=(hot,), answer=answer)


def _answer_on(frequencies: Frequencies) -> Answer:
    """The verdict on counts that were made without one: at the usual channels, under the usual engine."""
    from adapt.core.verdict.answering import answer_on
    from adapt.traces.counting.count import DEFAULT_CHANNELS

    return answer_on(frequencies, Engine.SPARK, DEFAULT_CHANNELS, Resources())


def _comparison(path: Path, manifest: Manifest) -> Reported:
    stored = read_comparison(path)
    answer = found_in(manifest.summary, str(path))
    told = _reported(path, manifest, [], [stored.table], comparison(stored.table))
    if answer is None:
        return replace(told, sentences=("Made without a verdict, by an earlier version; compare again for it.",))
    verdict = answer.verdict
    first = (at_channels(stored.table, 0 if verdict is None else verdict.channels), *answer.channels_tables())
    return replace(told, lead=(*answer.lead, *told_of(stored.table, verdict)), first=first, answer=answer)


def _run(path: Path, manifest: Manifest) -> Reported:
    run = read_run(path)
    if run.mechanism not in _MECHANISMS:
        raise BadInput(f"{path} is a run of {run.mechanism}, of which there is no report")
    sentences, tables, charts = _MECHANISMS[run.mechanism](run)
    return _reported(path, manifest, sentences, tables, charts)


def _network(path: Path) -> Reported:
    network = open_network(path)
    load = NetworkLoad.of(network.read.network)
    nodes = load.nodes()
    content = hash_of(network.text)
    made = {"artefact": path.name, "kind": "network", "content_hash": content}
    charts = network_charts(network.read.network, nodes)
    return Reported(path.name, "network", content, tuple(load.sentences()), (load.elements(), nodes), charts, made)


def _drop_plans(path: Path, manifest: Manifest) -> Reported:
    plans = read_drop_plans(path).plans
    inputs = plans.network.inputs
    highest = ", ".join(
        f"{entering.name!r} up to {rate:,.4g}" for entering, rate in zip(inputs, plans.most_rates, strict=True)
    )
    tables = plans.shown()
    sentences = [
        f"Made for epsilon {plans.epsilon:g} and headroom {plans.headroom:g}, at these tuples/s: {highest}.",
        "A plan is for overloaded rates from its low end on: the inputs are scaled down to that, and arcs keep the"
        " shares that stand there.",
        *(f"{table.title}: {len(table.rows):,} plans{_largest_error(table)}." for table in tables if _of_plans(table)),
    ]
    return _reported(path, manifest, sentences, tables, ())


def _of_plans(table: Table) -> bool:
    return table.columns[0].name == "plan"


def _largest_error(table: Table) -> str:
    named = any(column.name == "error" for column in table.columns)
    errors = [error for error in table.values("error") if isinstance(error, float)] if named else []
    return f", which lose at most {max(errors):.1%} of the best score" if errors else ""


Told: TypeAlias = tuple[Sequence[str], Sequence[Table], Sequence[Chart]]


def _repartition(run: StoredRun) -> Told:
    periods = run.periods.records()
    sentences = _of_periods(periods) if periods else ["No period has any row."]
    return sentences, [run.summary, run.periods], (imbalance_per_period(run.periods), migration_per_period(run.periods))


def _flux(run: StoredRun) -> Told:
    tables = run.tables
    cases, summary = verdict_under(tables["cases"], run.summary)
    sentences = [str(run.summary.records()[0]["verdict"])]
    further = [tables[name] for name in ("crashes", "moves", "rounds") if tables[name].rows]
    charts = stage_charts(tables["intervals"], tables["sites"], tables["moves"])
    return sentences, [replace(cases, note=""), summary, tables["intervals"], tables["sites"], *further], charts


def _elastic(run: StoredRun) -> Told:
    tables = run.tables
    cases, summary = verdict_under(tables["cases"], run.summary)
    sentences = [str(run.summary.records()[0]["verdict"])]
    series = [tables[name] for name in ("steps", "intervals", "sites", "moves") if tables[name].rows]
    charts = elastic_charts(tables["intervals"], tables["sites"], tables["moves"])
    return sentences, [replace(cases, note=""), summary, *series], charts


def _fit(run: StoredRun) -> Told:
    tables = run.tables
    planners, summary = verdict_under(tables["planners"], run.summary)
    sentences = [str(run.summary.records()[0]["verdict"])]
    charts = shedding_charts(tables["planners"], tables["ticks"], tables["nodes"])
    told = [replace(planners_told(planners), note=""), summary, *tables_of_arcs(tables["drops"])]
    return sentences, told, charts


def _of_periods(periods: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which period was the worst, and how bad it had to be."""
    worst = max(periods, key=lambda row: float(row["imbalance"] or 0))
    is_first = worst is periods[0]
    counted = "1 period" if len(periods) == 1 else f"{len(periods):,} periods"
    sentences = [
        f"{counted}; the worst imbalance, {_shown(worst['imbalance'], Kind.RATIO)}, came in the"
        f" {'first, which' if is_first else 'one that'} begins {_shown(worst['start'], Kind.TIME)}, where no placement"
        f" of whole keys does better than {_shown(worst['imbalance_floor'], Kind.RATIO)}."
    ]
    if is_first and len(periods) > 1:
        after = max(periods[1:], key=lambda row: float(row["imbalance"] or 0))
        sentences.append(
            "That first period runs on hashing alone, as there is no earlier one to build a plan from; the worst after"
            f" it is {_shown(after['imbalance'], Kind.RATIO)}."
        )
    return sentences


def _plan(path: Path) -> Reported:
    plan = read_plan(path)
    loads = load_table(plan)
    imbalance, floor = plan.metrics.get("imbalance"), plan.metrics.get("imbalance_floor")
    sentences = [
        f"A {plan.scheme} plan for {plan.channels} channels with {len(plan.explicit):,} keys mapped one by one."
    ]
    if imbalance is not None:
        sentences.append(
            f"Its fullest channel is foreseen to carry {imbalance:.3f} times the mean load;"
            f" no placement of whole keys can do better than {floor:.3f}."
        )
    charts = (channel_loads(loads, load="network"),) if loads.rows else ()
    tables = (plan_table(plan), loads, explicit_keys_table(plan))
    made = {"artefact": path.name, "kind": "plan", "content_hash": plan.content_hash(), **read_plan_made(path)}
    told = Reported(path.name, "plan", plan.content_hash(), tuple(sentences), tables, charts, made)
    answer = read_plan_answer(path)
    if answer is None:
        return told
    first = (*answer.channels_tables(), plan_first_table(plan))
    return replace(told, lead=tuple(answer.lead), first=first, answer=answer)


_MECHANISMS: Mapping[str, Callable[[StoredRun], Told]] = {
    "repartition": _repartition,
    "flux": _flux,
    "elastic": _elastic,
    "fit": _fit,
}

_KINDS: Mapping[str, Callable[[Path, Manifest], Reported]] = {
    "trace": _trace,
    "frequencies": _frequencies,
    "comparison": _comparison,
    "run": _run,
    KIND: _drop_plans,
}

_HEADINGS = {
    "trace": "The trace",
    "frequencies": "Its keys",
    "plan": "A plan",
    "comparison": "Schemes compared",
    "run": "Over time",
    KIND: "Drop plans",
    "network": "The network",
}


def _reported(
    path: Path, manifest: Manifest, sentences: Sequence[str], tables: Sequence[Table], charts: Sequence[Chart]
) -> Reported:
    made = {
        "artefact": path.name,
        "kind": manifest.kind,
        "content_hash": manifest.content_hash,
        **asdict(manifest.made),
    }
    return Reported(
        path.name, manifest.kind, manifest.content_hash, tuple(sentences), tuple(tables), tuple(charts), made
    )


def _shown(cell: Any, kind: Kind) -> str:
    return human(cell, Column("", kind))
