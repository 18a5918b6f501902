"""One Spark for the engine's own tests, and a fresh schema for each."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from spark_shop import SparkShop

from dbt.adapters.spark_dynamic.embedded import Home
from dbt.adapters.spark_dynamic.session import session_for_connection

_numbers = itertools.count(1)


@pytest.fixture
def shop(dbt_profile_target: dict[str, Any]) -> Iterator[SparkShop]:
    settings = dbt_profile_target["server_side_parameters"]
    settings |= {"spark.sql.session.timeZone": "UTC"}
    shop = SparkShop(session_for_connection(Home.at(None), settings), f"engine_{next(_numbers)}")
    yield shop
    shop.drop()
