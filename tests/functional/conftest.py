"""What all tests on a real Spark share."""

import pytest
from dbt.adapters.factory import reset_adapters

from spark_dynamic.refresh import self_check


@pytest.fixture(scope="session", autouse=True)
def no_adapter_yet():
    """Let the first project start Spark with its own settings.

    dbt goes on with an adapter that another run in this process left behind, whatever its profile.
    """
    reset_adapters()


@pytest.fixture(scope="session", autouse=True)
def without_self_checks():
    """These tests compare by themselves, and count statements; one test turns the check on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_check, "FIRST", 0)
        yield
