"""`adapt partition export`: a plan in the form an engine reads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from adapt.cli.options.artefacts import PlanPath
from adapt.cli.options.groups import option
from adapt.cli.options.placement import MaxParallelismOption
from adapt.cli.options.result import ForceOption
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import Format, FormatOption, narrate, narrate_written, show
from adapt.core.engines.names import Target

if TYPE_CHECKING:
    from adapt.traces.deploy.export import Deployment


def export(
    plan: PlanPath,
    to: Annotated[Target, option("The engine that follows the plan, or plan for any program.")],
    out: Annotated[Path, option("Output folder.", "DIR", "--out", "-o")],
    max_parallelism: MaxParallelismOption = None,
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
) -> "Deployment":
    """Export a plan to Spark, Kafka, Flink or any program.

    The output folder holds the plan, what the unpatched engine needs to follow it, and a README on how to use it.

    Example: adapt partition export web.plan --to kafka -o web.kafka
    """
    from adapt.traces.deploy.export import README, export_plan
    from adapt.traces.store.atomic import check_folder_free
    from adapt.traces.store.manifest import Provenance
    from adapt.traces.store.plans import read_plan

    check_folder_free(out, force=force)
    read = read_plan(plan)
    groups = {} if max_parallelism is None else {"max_parallelism": max_parallelism}
    inputs = [{"name": plan.name, "content_hash": read.content_hash()}]
    made = Provenance(command_line(), {"to": to.value, **groups}, inputs)
    exported = export_plan(read, to, out, made, max_parallelism=max_parallelism, force=force)
    narrate_written(out)
    narrate(f"see {out / README} for how to use it")
    show(exported.table(), format, exported.as_data())
    return exported
