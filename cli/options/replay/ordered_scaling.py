"""Options of `adapt replay ordered` that find the number of workers at run time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from adapt.cli.options import own
from adapt.cli.options.amounts import above_0
from adapt.cli.options.groups import setting
from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.core.ordered.engine.scaling import AutoScaling
    from adapt.core.stage.control.workers import Scaler

DELAY, COOLDOWN, TARGET = 2, 10, 5
"""Default scale-out delay, cooldown and target latency of plan-ahead, in control periods."""

_KEY_GROUPS = 720_720
"""Key groups for flink's policy: all numbers up to 16 divide them, since any worker may enter any partition."""


@dataclass(frozen=True, slots=True)
class RunTimeOptions:
    """How many workers are active while rows arrive."""

    PANEL: ClassVar[str] = "Workers at run time; by default all work throughout"
    policy: str | None = setting(
        None,
        "Scaling policy that chooses how many workers are active, from LEAST to MOST of --workers."
        f" {', '.join(one for one in ScalingPolicy if one is not ScalingPolicy.OPTIMUM)}, or your own MODULE:CLASS.",
        "NAME",
        completion=own.completed([one for one in ScalingPolicy if one is not ScalingPolicy.OPTIMUM]),
    )
    policy_option: own.PolicyOptionsOption = None
    period: str | None = setting(
        None, "How often the policy decides (default: a hundredth of the time until the last arrival).", "100ms"
    )
    scale_out_delay: str | None = setting(
        None, "How long more workers must be needed before they start (default: 2 periods).", "200ms", shown=False
    )
    cooldown: str | None = setting(
        None, "How long fewer workers must be enough before some park (default: 10 periods).", "1s", shown=False
    )
    utilization: float = setting(0.8, "Target utilization for --policy ds2.", "RATIO")
    lag: float = setting(1000.0, "Lag threshold of a worker for --policy lag.", "ROWS")

    def scaling(self, bounds: tuple[int, int] | None, cores: int) -> "AutoScaling | None":
        """How the number of active workers is found; None without a policy.

        Args:
            bounds: LEAST and MOST, if --workers gives them.

        Raises:
            UsageError: options do not go together, are out of range, or the policy does not exist.
        """
        from adapt.core.ordered.engine.scaling import AutoScaling

        if self.policy is None:
            if bounds is not None:
                raise UsageError(
                    "--workers LEAST:MOST needs --policy, which chooses between them; add it, or give a list such as"
                    " 1,2,4"
                )
            return None
        least, most = bounds or (1, cores)
        (name,) = own.policies(ScalingPolicy, [self.policy], self.policy_option)
        if name is ScalingPolicy.OPTIMUM:
            raise UsageError("--policy optimum needs the whole run in advance; use `adapt replay elastic`")
        delays = {
            option: None if text is None else above_0(f"--{option.replace('_', '-')}", text)
            for option, text in (("scale_out_delay", self.scale_out_delay), ("cooldown", self.cooldown))
        }

        def make(period_s: float) -> "Scaler":
            from adapt.core.elastic.planning.prices import Prices
            from adapt.core.elastic.policies.registry import Chosen, timed_policy
            from adapt.core.elastic.policies.scale_on import ScaleOn
            from adapt.core.elastic.policies.scaler import ElasticController, Patience

            patience = Patience(
                delays["scale_out_delay"] or DELAY * period_s, delays["cooldown"] or COOLDOWN * period_s
            )
            prices, between = Prices(TARGET * period_s), (least, most)
            limits: dict[str, Any] = {"pool": most, "partitions": _KEY_GROUPS, "prices": prices, "bounds": between}
            any_worker = ScaleOn(None)  # each may take any row, so the busiest says nothing
            chosen = Chosen(utilization=self.utilization, lag_rows=self.lag, scale_on=any_worker, **limits)
            policy, waits = timed_policy(name, chosen, patience)
            return ElasticController(policy, least, most, waits)

        make(1.0)  # errors before a run
        described = {"least": least, "most": most, "utilization": self.utilization, "lag_rows": self.lag, **delays}
        period_s = None if self.period is None else above_0("--period", self.period)
        code = {} if isinstance(name, ScalingPolicy) else {"own": name.as_data()}
        return AutoScaling(self.policy, make, period_s, {**described, "period_s": period_s, **code})
