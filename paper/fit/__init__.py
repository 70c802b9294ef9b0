"""The paper on load shedding over query networks: what is planned, and what is shown of it."""
