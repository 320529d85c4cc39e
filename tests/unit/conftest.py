"""One profile for all property tests: no deadline, as machines are shared; nothing left on disk."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "dtq",
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("dtq")
