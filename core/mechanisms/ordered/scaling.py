"""Autoscaler of workers that share memory."""

from dataclasses import replace

from adapt.core.elastic.policies.registry import AnyScalingPolicy, Chosen, timed_policy
from adapt.core.elastic.policies.scale_on import ScaleOn
from adapt.core.elastic.policies.scaler import ElasticController, Patience
from adapt.core.mechanisms.actors import chosen_of, patience_of
from adapt.core.mechanisms.cost_model import Terms
from adapt.core.mechanisms.scenarios import Scenario
from adapt.core.ordered.engine.scaling import AutoScaling

KEY_GROUPS = 720_720
"""Key groups for flink's policy: all numbers up to 16 divide them, since any worker may enter any partition."""


def shared_scaler(name: AnyScalingPolicy, chosen: Chosen, patience: Patience, least: int) -> ElasticController:
    """Autoscaler of workers that share memory.

    Any of them may take any row, so the busiest worker says nothing, and thresholds watch the mean of all.

    Raises:
        UsageError: a setting is out of range, or a user's class does not fit.
    """
    shared = replace(chosen, scale_on=ScaleOn(None), partitions=KEY_GROUPS)
    policy, waits = timed_policy(name, shared, patience)
    return ElasticController(policy, least, chosen.pool, waits)


def sharing_of(scenario: Scenario, terms: Terms) -> AutoScaling | None:
    """Autoscaler of the ordered runtime; None for a fixed number of workers."""
    name = scenario.elastic
    if name is None:
        return None
    chosen, patience, least = chosen_of(scenario, terms), patience_of(scenario, terms), terms.least_of(scenario)
    return AutoScaling(str(name), lambda _: shared_scaler(name, chosen, patience, least), terms.period_s)
