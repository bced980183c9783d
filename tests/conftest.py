"""Settings that every test shares."""

import pytest
from hypothesis import HealthCheck, settings

from tests.coming_from import watch

# `make test` tries the same examples on every run and prints how to replay a failing one; the soak
# goes looking for new ones. Choose with `pytest --hypothesis-profile=soak`.
settings.register_profile(
    "turnlog",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=2_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("turnlog")


def pytest_configure(config: pytest.Config) -> None:
    watch(config)
