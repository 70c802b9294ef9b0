"""Costs of a stage by a cost profile."""

import numpy as np

from adapt.core.costs.profile import Profile, ServiceBy
from adapt.core.errors import BadInput
from adapt.core.keys.key_text import keys_from_texts
from adapt.core.stage.conditions.service_times import UNKNOWN, Service, Spread, SpreadKind
from adapt.core.stage.conditions.settings import FixedCosts
from adapt.core.stage.input.keyed_rows import BYTES, COST, KEY
from adapt.core.stage.input.row_costs import KeyCosts, Means, RowCosts, SizeCosts, StatedCosts
from adapt.core.stream import KeyType


def service_of(profile: Profile) -> Service | None:
    """Service times over all rows; None if they were not measured."""
    service = profile.service
    if service.mean_s is None:
        return None
    spread = _spread(service.quantiles_s)
    return Service(service.mean_s, spread=UNKNOWN if spread is None else spread)


def transport_of(profile: Profile, row_bytes: float) -> float:
    """Worker seconds to receive and report a row of this size."""
    return (profile.transport.row_s or 0.0) + (profile.transport.byte_s or 0.0) * row_bytes


def fixed_costs_of(profile: Profile | None) -> FixedCosts:
    """Costs of a rescale besides its state; 0 if not measured."""
    if profile is None:
        return FixedCosts()
    state = profile.state
    return FixedCosts(
        plan_s=state.plan_s or 0.0,
        order_s=state.order_move_s or 0.0,
        extract_s=state.serialize_move_s or 0.0,
        install_s=state.install_move_s or 0.0,
        between_rows=state.between_rows,
    )


def row_costs_of(
    profile: Profile, columns: list[str], key_type: KeyType, row_bytes: float, seed: int
) -> RowCosts | None:
    """CPU time of each row; None if all have the same distribution.

    Args:
        columns: Columns of the trace.
        row_bytes: Size of a row where the column that decides is not its size.
    """
    service, byte_s = profile.service, profile.transport.byte_s or 0.0
    by_size = byte_s > 0 and BYTES in columns
    if service.mean_s is None or (service.by is ServiceBy.ALL and not by_size):
        return None
    means: Means
    match service.by:
        case ServiceBy.KEY:
            keys = keys_from_texts([one.key for one in profile.keys], key_type)
            column, means = KEY, KeyCosts(keys, np.array([one.mean_s for one in profile.keys]), service.mean_s)
        case ServiceBy.COST:
            column, means = COST, StatedCosts(service.cost_factor, service.fixed_s)
        case ServiceBy.SIZE:
            sizes = np.array([one.most_bytes for one in profile.sizes])
            column, means = BYTES, SizeCosts(sizes, np.array([one.mean_s for one in profile.sizes]))
        case _:
            column, means = BYTES, SizeCosts(np.zeros(1, np.int64), np.array([service.mean_s]))
    if column not in columns:
        raise BadInput(
            f'its service times depend on column {column!r}, which the trace does not have; set by = "all" in [service]'
        )
    spread = _spread(service.quantiles_s if service.by is ServiceBy.ALL else service.within) or UNKNOWN
    if column == BYTES:
        return RowCosts(column, means, spread, seed, profile.transport.row_s or 0.0, byte_s)
    return RowCosts(column, means, spread, seed, transport_of(profile, row_bytes))


def shifted(service: Service, transport_s: float) -> Service:
    """Service times with a time on top of each.

    The standard deviation stays that of the service.
    """
    mean_s, spread = service.mean_s, service.spread
    if mean_s is None or not transport_s:
        return service
    if spread is not None and spread.kind is SpreadKind.EMPIRICAL:
        spread = Spread(spread.kind, sample=spread.sample + transport_s)
    elif spread is not None and spread.kind is SpreadKind.LOGNORMAL:
        spread = Spread(spread.kind, spread.shape * mean_s / (mean_s + transport_s), assumed=spread.assumed)
    return Service(mean_s + transport_s, service.sd_s, spread)


def _spread(sample: tuple[float, ...] | None) -> Spread | None:
    """An empirical distribution; None, unknown."""
    return None if sample is None else Spread(SpreadKind.EMPIRICAL, sample=np.array(sample))
