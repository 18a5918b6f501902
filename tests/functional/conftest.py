"""What all tests on a real Spark share."""

import pytest

from spark_dynamic.refresh import self_check


@pytest.fixture(scope="session", autouse=True)
def without_self_checks():
    """These tests compare by themselves, and count statements; one test turns the check on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_check, "FIRST", 0)
        yield
