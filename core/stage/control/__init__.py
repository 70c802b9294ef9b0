"""Controllers of a stage: rebalancing, scaling, shedding and recovery."""
