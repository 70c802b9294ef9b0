"""Report of a plan: channels before and after, pinned keys."""

from dataclasses import replace
from pathlib import Path

from adapt.core.partitioning.plans.plan_tables import load_table, pinned_keys_table, plan_first_table, plan_table
from adapt.core.phrases import counted
from adapt.core.report.key_charts import channel_loads
from adapt.traces.reports.reported import Reported, rejected
from adapt.traces.store.plan_json import readings_of_plan
from adapt.traces.store.plans import read_plan, read_plan_answer, read_plan_made


def reported(path: Path) -> Reported:
    """The verdict, channels before and after, and pinned keys."""
    plan = read_plan(path)
    loads = load_table(plan)
    imbalance, floor = plan.metrics.get("imbalance"), plan.metrics.get("best_possible")
    sentences = [
        f"A {plan.scheme} plan for {counted(plan.channels, 'worker')} with {counted(len(plan.explicit), 'pinned key')}."
    ]
    if imbalance is not None:
        is_above = f"{imbalance:.3f}" != f"{floor:.3f}"
        sentences.append(
            f"Predicted imbalance: {imbalance:.3f}{'; ' if is_above else ', '}the best possible without splitting keys"
            f"{f' is {floor:.3f}' if is_above else ''}."
        )
    charts = (channel_loads(loads, load="network"),) if loads.rows else ()
    tables = (plan_table(plan), loads, pinned_keys_table(plan))
    made = {"artefact": path.name, "kind": "plan", "content_hash": plan.content_hash(), **read_plan_made(path)}
    lost = rejected(readings_of_plan(path))
    said = Reported(path.name, "plan", plan.content_hash(), tuple(sentences), tables, charts, made, rejected=lost)
    answer = read_plan_answer(path)
    if answer is None:
        return said
    first = (*answer.channels_tables(), plan_first_table(plan))
    verdict = answer.verdict
    own = None if verdict is None or verdict.pins_nothing else (verdict.keys_to_pin, verdict.splits_of_plan)
    is_recommended = own == (len(plan.explicit), len(plan.splits))
    return replace(said, lead=tuple(answer.lead), first=first, answer=answer, plan=str(path) if is_recommended else "")
