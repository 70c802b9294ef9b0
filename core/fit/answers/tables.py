"""Answers as a table and a sentence."""

from collections.abc import Mapping, Sequence

from adapt.core.fit.answers.answers import Answer
from adapt.core.table import Column, Kind, Table

ANSWER_COLUMNS = (
    Column("planner"),
    Column("aggregate"),
    Column("answer", about="function of the rows of a window, by group if it has them"),
    Column("results", Kind.COUNT, about="without drops"),
    Column("missing", Kind.SHARE, about="of the results"),
    Column("harmed", Kind.SHARE, about="of the results: some of their rows were dropped"),
    Column("error_p50", Kind.SHARE, about="relative error of harmed results"),
    Column("error_p95", Kind.SHARE, about="relative error of harmed results"),
    Column("interval", Kind.SHARE, about="of harmed results: median half-width of the 95 % intervals, of the estimate"),
    Column("covered", Kind.SHARE, about="of harmed results, by their 95 % intervals"),
    Column("found", Kind.SHARE, about="of the groups that rank highest"),
    Column("total_error", Kind.SHARE, about="of the sum of all results"),
    Column("total_interval", Kind.SHARE, about="half-width of its 95 % interval"),
)


def answers_table(answers: Mapping[str, Sequence[Answer]]) -> Table:
    """One row per planner and answer."""
    rows = [
        (
            planner,
            each.operator,
            str(each.computed),
            each.accuracy.results,
            each.accuracy.missing,
            each.accuracy.harmed,
            each.accuracy.error_p50,
            each.accuracy.error_p95,
            each.accuracy.interval,
            each.accuracy.covered,
            each.accuracy.found,
            each.accuracy.total_error,
            each.accuracy.total_interval,
        )
        for planner, of_planner in answers.items()
        for each in of_planner
    ]
    return Table.from_rows("Answers", ANSWER_COLUMNS, rows)


def worst_answer(planner: str, answers: Sequence[Answer]) -> str:
    """Sentence on the answer with the largest error; empty without answers."""
    if not answers:
        return ""
    worst = max(answers, key=lambda each: (each.accuracy.error_p95 or 0.0, each.accuracy.missing))
    accuracy, name = worst.accuracy, f"{worst.computed} of {worst.operator}"
    missing = f"{accuracy.missing:.2%} are missing"
    if accuracy.found is not None:
        return f"With {planner}, {name} finds {accuracy.found:.1%} of the groups; of its windows, {missing}."
    if accuracy.error_p95 is None:
        return f"With {planner}, no result of {name} loses some of its rows; {missing}."
    return (
        f"With {planner}, {accuracy.harmed:.2%} of the results of {name} lose rows and are wrong by "
        f"{accuracy.error_p50 or 0:.2%} in the median ({accuracy.error_p95:.2%} at the 95th percentile); {missing}."
    )
