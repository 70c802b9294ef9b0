"""Load shedding: a site drops the more of its input the more tuples it holds."""

from typing import Any

import numpy as np

from adapt.core.compiled import inlined
from adapt.core.random_bits import GOLDEN, mixed, uniform
from adapt.core.stage.records.finding import held_at, part_at, refusal_at, site_at
from adapt.core.stage.records.world import World


@inlined
def sheds(world: World, site_number: int, now: float) -> Any:
    """Whether a site sheds the tuple at hand, by the tuple's own random draw; if not, it holds it from now on."""
    site = site_at(world, site_number)
    first = site_number * world.hold
    while site.held > 0 and held_at(world, first + site.held_first).since + world.held_for <= now:
        site.held -= 1
        site.held_first += 1
        if site.held_first == world.hold:
            site.held_first = 0
    bits = mixed(mixed(world.draws + np.uint64(site.producer)) + np.uint64(site.number) * GOLDEN)
    if uniform(bits) < part_at(world, site.held).shed:
        return True
    place = site.held_first + site.held
    if place >= world.hold:
        place -= world.hold
    kept = held_at(world, first + place)
    kept.since = now
    kept.partition = site.partition
    site.held += 1
    return False


@inlined
def count_shed(world: World, site: Any, now: float) -> None:
    """The tuple at hand is shed; it is counted at its site and, where shedding is watched, by time."""
    site.refused = 0
    site.shed += 1
    if world.refusals > 0:
        at = min(int((now - world.watched_from) / world.refusal_s), world.refusals - 1)
        refusal_at(world, at).count += 1
