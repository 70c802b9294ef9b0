"""The scan construction, against Algorithm 2 word for word."""

from math import log, prod

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.frequencies.exact import KeyCounts, frequencies_of
from adapt.core.partitioners.consistent import ConsistentHash
from adapt.core.partitioners.explicit import ExplicitMap
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.names import UtilityName
from adapt.core.partitioners.problem import Problem
from adapt.core.partitioners.scan import first_lowest
from adapt.core.partitioners.scan import scan as scan_problem
from adapt.core.resources.functions import Resources

BETA = {"C": lambda f: f**0, "L": lambda f: f, "Q": lambda f: f * f}
UTILITY = {
    "A": lambda rho, gamma: rho + 0 * gamma,
    "APM": lambda rho, gamma: rho + gamma,
    "APLM": lambda rho, gamma: rho + log(1 + gamma),
    "ATM": lambda rho, gamma: rho * (1 + gamma),
    "ATLM": lambda rho, gamma: rho * (1 + log(1 + gamma)),
}
KEYS = "abcdefghij"


def ring(channels):
    return ConsistentHash(channels, replicas=5)


def scan(current, hash_c, f, tracked, resources, utility):
    """The partitioner that scan builds from counts as a dictionary."""
    counted = frequencies_of(KeyCounts(pa.array(list(f)), np.array(list(f.values())), sum(f.values())))
    keys = pa.array(sorted(tracked, key=lambda key: -f[key]), counted.keys.type)
    problem = Problem.of(current, hash_c, counted, keys, resources, utility)
    return HybridPartitioner(ExplicitMap(keys, scan_problem(problem)), hash_c)


def literal_scan(p, tracked_before, tracked, channels, f, hash_c, letters, alphas, utility):
    """Algorithm 2 with Eqs. 15 and 18 to 20, and our rule for ties; every sum is taken anew."""
    beta_s = BETA[letters[0]]
    departed = tracked_before - set(tracked)
    m = sum(beta_s(f.get(d, 0)) for d in departed if p(d) != hash_c(d))
    ideal = sum(beta_s(f.get(d, 0)) for d in departed | set(tracked)) / channels

    def load(k, i, h):
        return sum(BETA[letters[k]](f[d]) for d in h if h[d] == i)

    def rho(h):
        kept = [k for k in range(3) if letters[k] != "C"]
        if not kept or channels == 1:
            return 0.0
        return prod(rho_k(k, h) for k in kept) ** (1 / len(kept))

    def rho_k(k, h):
        theta = (alphas[k] - 1) / (1 + alphas[k] / (channels - 1))
        loads = [load(k, i, h) for i in range(channels)]
        return (max(loads) - min(loads)) / (theta * sum(loads) / channels)

    h_p = {}
    for d in sorted(tracked, key=lambda d: (-f[d], d.encode())):
        options = []
        for l in range(channels):  # noqa: E741 - the paper's letter
            gamma = (m + beta_s(f[d]) * (l != p(d))) / ideal
            options.append(UTILITY[utility](rho({**h_p, d: l}), gamma))
        j = next(at for at, u in enumerate(options) if u <= min(options) * (1 + 1e-12))
        m += beta_s(f[d]) * (j != p(d))
        h_p[d] = j
    return h_p


@st.composite
def instances(draw):
    """A step of any kind: growing or shrinking, with keys new, kept, departed and gone, and many equal counts."""
    f = dict(
        zip(
            KEYS,
            draw(st.lists(st.integers(1, draw(st.sampled_from([2, 9, 99]))), min_size=1, max_size=10)),
            strict=False,
        )
    )
    before, after = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    tracked = draw(st.sets(st.sampled_from(sorted(f))))
    explicit = draw(st.dictionaries(st.sampled_from([*KEYS, "gone"]), st.integers(0, before - 1)))
    return f, before, after, tracked, explicit


@settings(max_examples=500, deadline=None)
@given(
    instances(),
    st.text("CLQ", min_size=3, max_size=3),
    st.tuples(*[st.sampled_from([1.1, 1.2, 2.0])] * 3),
    st.sampled_from(UtilityName),
)
def test_scan_is_algorithm_2(instance, letters, alphas, utility):
    f, before, after, tracked, explicit = instance
    current, hash_c = HybridPartitioner(explicit, ring(before)), ring(after)
    built = scan(current, hash_c, f, sorted(tracked), Resources.parse(letters, alphas), utility)
    literal = literal_scan(
        current.channel_of, set(explicit), tracked, after, f, hash_c.channel_of, letters, alphas, utility.value
    )
    assert dict(built.explicit) == literal


@pytest.mark.parametrize("letters", [a + b + c for a in "CLQ" for b in "CLQ" for c in "CLQ"])
@pytest.mark.parametrize("utility", UtilityName)
def test_scan_is_algorithm_2_for_every_choice_of_functions(letters, utility):
    f = {"a": 9, "b": 7, "c": 7, "d": 4, "e": 2, "f": 2, "g": 2, "h": 1}
    current, hash_c = HybridPartitioner({"a": 0, "b": 0, "c": 1, "d": 2, "gone": 1}, ring(3)), ring(4)
    built = scan(current, hash_c, f, list("abcefg"), Resources.parse(letters), utility)
    literal = literal_scan(
        current.channel_of, set("abcd") | {"gone"}, set("abcefg"), 4, f, hash_c.channel_of, letters, [1.2] * 3, utility
    )
    assert dict(built.explicit) == literal


def test_light_keys_offset_the_heavy_one():
    built = scan(ring(2), ring(2), {"a": 5, "b": 3, "c": 2}, "abc", Resources(), UtilityName.A)
    assert built.channel_of("b") == built.channel_of("c") != built.channel_of("a")


def test_equal_channels_are_taken_from_the_lowest():
    built = scan(ring(3), ring(3), {"a": 5, "b": 4, "c": 3}, "abc", Resources(), UtilityName.A)
    assert dict(built.explicit) == {"a": 0, "b": 1, "c": 2}


@settings(deadline=None)
@given(instances())
def test_every_tracked_key_is_mapped_and_nothing_else(instance):
    f, before, after, tracked, explicit = instance
    built = scan(HybridPartitioner(explicit, ring(before)), ring(after), f, sorted(tracked), Resources(), UtilityName.A)
    assert set(built.explicit) == tracked
    assert all(0 <= channel < after for channel in built.explicit.values())


@settings(deadline=None)
@given(instances(), st.integers(2, 1000))
def test_the_scale_of_counts_does_not_matter(instance, scale):
    f, before, after, tracked, explicit = instance
    scaled = {key: count * scale for key, count in f.items()}
    both = [
        scan(
            HybridPartitioner(explicit, ring(before)),
            ring(after),
            counts,
            sorted(tracked),
            Resources(),
            UtilityName.APM,
        ).explicit
        for counts in (f, scaled)
    ]
    assert dict(both[0]) == dict(both[1])


def test_scores_within_rounding_tie_and_the_first_wins():
    assert first_lowest(np.array([2.0, 1.0 + 1e-13, 1.0])) == 1
    assert first_lowest(np.array([2.0, 1.0 + 1e-11, 1.0])) == 2
    assert first_lowest(np.array([0.0, 0.0])) == 0


def test_null_and_integers_are_keys():
    built = scan(ring(2), ring(2), {None: 5, 7: 3}, [None, 7], Resources(), UtilityName.A)
    assert dict(built.explicit) == {None: 0, 7: 1}
