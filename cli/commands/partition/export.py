"""`adapt partition export`: a plan in the form an engine reads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from adapt.cli.options.artefacts import PlanPath
from adapt.cli.options.groups import option, setting
from adapt.cli.options.placement import ENGINE, CurrentSchemeChoice, MaxParallelismOption
from adapt.cli.options.result import ForceOption
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import Format, FormatOption, narrate, narrate_written, show
from adapt.core.engines.names import Target
from adapt.core.partitioning.measures.plan_settings import EXPERT

if TYPE_CHECKING:
    from adapt.traces.deploy.export import Deployment


def export(
    plan: PlanPath,
    to: Annotated[
        Target,
        option("The engine that follows the plan; rekey for any engine by its own hash; plan for any program."),
    ],
    out: Annotated[Path, option("Output folder.", "DIR", "--out", "-o")],
    engine: CurrentSchemeChoice | None = setting(
        None, "Engine that places rekeyed records. Default: that under the plan.", "NAME", needs="--to rekey", **ENGINE
    ),
    trace: Path | None = setting(None, "Refuse replacements that occur in this trace.", "TRACE", needs="--to rekey"),
    separator: str | None = setting(
        None,
        "Between a key and its suffix. Default: the first that no key uses, such as ~.",
        "TEXT",
        panel=EXPERT,
        needs="--to rekey",
    ),
    max_parallelism: MaxParallelismOption = None,
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
) -> "Deployment":
    """Export a plan to Spark, Kafka, Flink, any hash or any program.

    The output folder holds the plan, what the unpatched engine needs to follow it, and a README on how to use it.

    Example: adapt partition export web.plan --to kafka -o web.kafka
    """
    from adapt.core.engines.rekey.export import rekey_bundle
    from adapt.traces.deploy.export import README, export_plan
    from adapt.traces.deploy.rekeys import rekey_plan
    from adapt.traces.store.atomic import check_folder_free
    from adapt.traces.store.manifest import Provenance, as_input
    from adapt.traces.store.plan_json import readings_of_plan
    from adapt.traces.store.plans import read_plan

    check_folder_free(out, force=force)
    read = read_plan(plan)
    groups = {} if max_parallelism is None else {"max_parallelism": max_parallelism}
    inputs = [as_input(plan.name, read.content_hash(), readings_of_plan(plan))]
    made = Provenance(command_line(), {"to": to.value, **groups}, inputs)
    bundle = None
    if to is Target.REKEY:
        bundle = rekey_bundle(rekey_plan(read, engine, trace, separator, max_parallelism))
    exported = export_plan(read, to, out, made, max_parallelism=max_parallelism, bundle=bundle, force=force)
    narrate_written(out)
    narrate(f"see {out / README} for how to use it")
    show(exported.table(), format, exported.as_data())
    return exported
