"""Settings of every test."""

from hypothesis import settings

# A kernel's first call compiles it, and the machine may be busy: how long an example takes says nothing here.
settings.register_profile("adapt", deadline=None)
settings.load_profile("adapt")
