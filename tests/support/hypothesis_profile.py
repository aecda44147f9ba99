"""Settings of hypothesis: no assertion depends on the speed of the machine."""

from hypothesis import HealthCheck, settings

settings.register_profile("headgate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headgate")
