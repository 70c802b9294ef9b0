"""`adapt lab check`: does a policy class keep the rules."""

from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options import own
from adapt.cli.options.amounts import above_0
from adapt.cli.options.groups import setting
from adapt.cli.terminal.output import Format, FormatOption, show

if TYPE_CHECKING:
    from adapt.core.lab.conformance import Conformance


def check(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY",
            help="MODULE:CLASS[:KEY=VALUE,...], or the name of a built-in policy; MODULE:FUNCTION for a scheme.",
        ),
    ],
    *,
    decision_limit: str = setting("1s", "Longest time of a decision.", "1s"),
    format: FormatOption = Format.TABLE,
) -> "Conformance":
    """Check a policy of your own (exit 1 if a check fails).

    It runs on small stages in memory. Its answers must be possible, it must rest at still load, survive crashes, keep
    to memory if it looks at memory, repeat itself, and decide in time. Each check shows its first counterexample.

    Example: adapt lab check my_policies:Calm
    """
    from adapt.traces.own.checks import check_policy

    limit_s = above_0("--decision-limit", decision_limit)
    found = check_policy(own.any_policy(policy), limit_s)
    show(found.displayed(), format, found.as_data())
    return found
