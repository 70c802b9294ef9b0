"""Controllers of a stage at work: rebalancing, scaling, shedding, recovery."""
