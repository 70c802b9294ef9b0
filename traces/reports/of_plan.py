"""A plan: what it does to the channels."""

from dataclasses import replace
from pathlib import Path

from adapt.core.partitioning.plans.plan_tables import explicit_keys_table, load_table, plan_first_table, plan_table
from adapt.core.report.key_charts import channel_loads
from adapt.traces.reports.reported import Reported
from adapt.traces.store.plans import read_plan, read_plan_answer, read_plan_made


def reported(path: Path) -> Reported:
    """The verdict, its channels before and after, what is mapped one by one."""
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
    said = Reported(path.name, "plan", plan.content_hash(), tuple(sentences), tables, charts, made)
    answer = read_plan_answer(path)
    if answer is None:
        return said
    first = (*answer.channels_tables(), plan_first_table(plan))
    return replace(said, lead=tuple(answer.lead), first=first, answer=answer)
