"""Claims of the FIT paper on load shedding over query networks, tested."""
