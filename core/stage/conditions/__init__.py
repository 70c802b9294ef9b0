"""What a run of the stage is given: settings, arrivals, faults, disturbances, shedding."""
