"""Checks of users' policies in this process: clock, watchdog, global random numbers."""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any
from unittest.mock import patch

import numpy as np

from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.policies.registry import AnyScalingPolicy, policy_of
from adapt.core.errors import UsageError
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import AnyFluxPolicy, controller_of
from adapt.core.lab.conformance import Conformance
from adapt.core.lab.move_histories import Plan, moves_subject
from adapt.core.lab.scale_histories import Wanted, scaling_subject
from adapt.core.lab.scheme_histories import scheme_subject
from adapt.core.lab.suite import LIMIT_S, Stopwatch, TooSlow, checked
from adapt.core.own.own_code import OwnCode

ENDLESS_S = 10.0
"""Seconds after which a decision is stopped."""

_LATER_S, _STEP_S = 12_345_678.0, 60.0
"""How much later it is elsewhere, and how much time passes there from one look at a clock to the next."""

_CLOCKS = ("time", "monotonic", "perf_counter")


class Watch:
    """Measures decisions by the clock, and stops endless ones."""

    def __init__(self, endless_s: float = ENDLESS_S) -> None:
        """Watch with this limit."""
        self._endless_s, self._clock = endless_s, time.perf_counter

    def timed(self, decide: Callable[[], Any]) -> tuple[Any, float]:
        """The answer and the seconds it took."""
        begun_s = self._clock()
        with self._stopping():
            answer = decide()
        return answer, self._clock() - begun_s

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(_number: int, _frame: Any) -> None:
            raise TooSlow

        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, self._endless_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Clocks months ahead, and another state of global random numbers."""
        states = random.getstate(), np.random.get_state()
        random.seed(20_260_101)
        np.random.seed(20_260_101)
        real = {name: getattr(time, name) for name in _CLOCKS}
        calls = count()
        ahead: dict[str, Any] = {
            name: (lambda now=now: now() + _LATER_S + _STEP_S * next(calls)) for name, now in real.items()
        }
        try:
            with patch.multiple(time, **ahead):
                yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])


def check_policy(
    policy: FluxPolicy | ScalingPolicy | OwnCode, limit_s: float = LIMIT_S, watch: Stopwatch | None = None
) -> Conformance:
    """Check a policy on small stages, or a scheme on counted keys.

    Args:
        limit_s: Most seconds that a decision may take.
    """
    watch = watch or Watch()
    about = policy.as_data() if isinstance(policy, OwnCode) else None
    moves = hasattr(policy.call, "moves") if isinstance(policy, OwnCode) else isinstance(policy, FluxPolicy)
    scales = hasattr(policy.call, "workers") if isinstance(policy, OwnCode) else isinstance(policy, ScalingPolicy)
    if policy in (FluxPolicy.NONE, FluxPolicy.OPTIMUM):
        raise UsageError(f"policy {policy} cannot be checked: it decides nothing, or knows the whole run in advance")
    found = []
    if not isinstance(policy, ScalingPolicy) and moves:
        found.append(checked(moves_subject(policy.value, lambda: _plan_of(policy)), watch, about, limit_s))
    if not isinstance(policy, FluxPolicy) and scales:
        found.append(checked(scaling_subject(policy.value, lambda: _wanted_of(policy)), watch, about, limit_s))
    if isinstance(policy, OwnCode) and not found and not isinstance(policy.call, type):
        found.append(checked(scheme_subject(replace(policy, kind="scheme")), watch, about, limit_s))
    if not found:
        raise UsageError(f"policy {policy} has neither a method moves(self, view) nor workers(self, view)")
    if len(found) == 1:
        return found[0]
    both = zip(("moves", "workers"), found, strict=True)
    checks = [replace(each, name=f"{method}: {each.name}") for method, one in both for each in one.checks]
    return replace(found[0], checks=tuple(checks))


def _plan_of(policy: AnyFluxPolicy) -> Plan:
    controller = controller_of(policy)
    assert controller is not None
    return controller.plan


def _wanted_of(policy: AnyScalingPolicy) -> Wanted:
    return policy_of(policy).wanted
