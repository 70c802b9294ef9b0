"""Autoscaler of workers that share memory."""

from dataclasses import replace

from adapt.core.elastic.policies.registry import AnyScalingPolicy, Chosen, timed_policy
from adapt.core.elastic.policies.scale_on import ScaleOn
from adapt.core.elastic.policies.scaler import ElasticController, Patience

KEY_GROUPS = 720_720
"""Key groups for flink's policy: all numbers up to 16 divide them, since any worker may enter any partition."""


def shared_scaler(name: AnyScalingPolicy, chosen: Chosen, patience: Patience) -> ElasticController:
    """Autoscaler of workers that share memory.

    Any of them may take any row, so the busiest worker says nothing, and thresholds watch the mean of all.

    Raises:
        UsageError: a setting is out of range, or a user's class does not fit.
    """
    shared = replace(chosen, scale_on=ScaleOn(None), partitions=KEY_GROUPS)
    policy, waits = timed_policy(name, shared, patience)
    return ElasticController(policy, *chosen.bounds, waits)
