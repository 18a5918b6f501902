"""`method: thrift` against a real Spark Thrift server with Delta."""

import json
from collections.abc import Iterator

import pytest
from tests.functional.connections.processes import DbtProject
from tests.functional.connections.thrift_server import thrift_server

PEOPLE = "id,name,born\n1,O'Brien,1980-01-31\n2,Ada,1815-12-10\n3,,\n"
SETTINGS = {
    "zone": "select current_timezone()",
    "ansi": "select '${spark.sql.ansi.enabled}' as ansi",
}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with thrift_server(tmp_path_factory.mktemp("thrift")) as number:
        yield number


@pytest.fixture
def over_thrift(shop: DbtProject, port: int) -> DbtProject:
    shop.use_profile(method="thrift", host="127.0.0.1", port=port, user="dbt", threads=2)
    return shop


def test_a_project_over_thrift(over_thrift: DbtProject, port: int) -> None:
    shop = over_thrift
    shop.write("seeds/people.csv", PEOPLE)
    shop.write(
        "models/adults.sql",
        "{{ config(materialized='table') }} select id, name, year(born) as y "
        "from {{ ref('people') }} where born is not null",
    )
    shop.write(
        "models/names.sql",
        "{{ config(materialized='dynamic_table') }} "
        "select name, count(*) as n from {{ ref('adults') }} group by name",
    )
    first = shop.dbt(
        "build",
        answers={
            **SETTINGS,
            "name": "select name from trial.people where id = 1",
            "rows": "select count(*) from trial.names",
        },
    )
    assert first.code == 0, first.screen + first.errors
    assert shop.results()["names"]["adapter_response"]["refresh_action"] == "FULL"
    # The profile's settings, which are not the server's, hold here as in a session.
    assert first.told == {"zone": "UTC", "ansi": "true", "name": "O'Brien", "rows": "2"}

    shop.write("models/malformed.sql", "{{ config(materialized='table') }} select int('x') as a")
    again = shop.dbt("build")
    assert shop.results()["names"]["adapter_response"]["refresh_action"] == "NO_DATA"
    assert shop.results()["malformed"]["status"] == "error"
    assert "[CAST_INVALID_INPUT]" in again.screen
    assert "\tat " not in again.screen and "org.apache" not in again.screen, again.screen
    assert "ERROR=1 " in again.screen

    shop.use_profile(
        method="thrift",
        host="127.0.0.1",
        port=port,
        user="dbt",
        poll_interval=1,
        server_side_parameters={
            "spark.sql.ansi.enabled": False,
            "spark.sql.session.timeZone": "Asia/Tokyo",
            "shop.own": "it`s; kept",
        },
    )
    chosen = shop.dbt(
        "run", "--select", "adults", answers={**SETTINGS, "own": "select '${shop.own}' as own"}
    )
    assert chosen.code == 0, chosen.screen + chosen.errors
    assert chosen.told == {"zone": "Asia/Tokyo", "ansi": "false", "own": "it`s; kept"}


def test_a_server_whose_connections_share_one_session_is_refused(
    shop: DbtProject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    setting = "spark.sql.hive.thriftServer.singleSession"
    shop.write("models/one.sql", "{{ config(materialized='table') }} select 1 as a")
    with thrift_server(tmp_path_factory.mktemp("single"), **{setting: "true"}) as port:
        shop.use_profile(method="thrift", host="127.0.0.1", port=port, user="dbt")
        run = shop.dbt("run")
    assert run.code != 0
    assert f"SESSION_SHARED: The Spark server runs with {setting}=true" in run.screen
    assert run.screen.count("SESSION_SHARED") == 1, run.screen
    assert "Traceback" not in run.screen + run.errors


RUN_ALL = """
{% macro run_all(statements) %}
  {% for statement in statements %}{% do run_query(statement) %}{% endfor %}
{% endmacro %}
"""
SWITCHED = [
    "create schema if not exists trial",
    "create table trial.orders (id int) using delta "
    "tblproperties ('delta.enableChangeDataFeed' = 'true')",
    "insert into trial.orders values (1)",
    "alter table trial.orders set tblproperties ('delta.enableChangeDataFeed' = 'false')",
    "insert into trial.orders values (2)",
    "alter table trial.orders set tblproperties "
    "('delta.enableChangeDataFeed' = 'true', 'note' = 'it \"is\" on, \"a\":\"b\"')",
    "insert into trial.orders values (3)",
]


def test_a_feed_that_was_off_for_a_while_and_a_zone_that_is_an_offset(
    over_thrift: DbtProject, port: int
) -> None:
    shop = over_thrift
    shop.use_profile(
        method="thrift",
        host="127.0.0.1",
        port=port,
        user="dbt",
        server_side_parameters={"spark.sql.session.timeZone": "+01:00"},
    )
    shop.write("macros/run_all.sql", RUN_ALL)
    made = shop.dbt("run-operation", "run_all", "--args", json.dumps({"statements": SWITCHED}))
    assert made.code == 0, made.screen
    shop.write(
        "models/changed.sql",
        "{{ config(materialized='table') }} select id, change_action from "
        "{{ changes(source('trial', 'orders'), since=1) }}",
    )
    shop.write(
        "models/ids.sql",
        "{{ config(materialized='dynamic_table') }} select id from "
        "{{ source('trial', 'orders') }}",
    )
    shop.write(
        "models/sources.yml",
        json.dumps({"sources": [{"name": "trial", "tables": [{"name": "orders"}]}]}),
    )
    first = shop.dbt(
        "run", answers={"n": "select string(collect_list(id)) from trial.changed", **SETTINGS}
    )
    assert first.code == 0, first.screen
    # The row of the time without a feed is among them; the versions were compared.
    assert sorted(first.told["n"].strip("[]").split(", ")) == ["2", "3"]
    assert first.told["zone"] == "+01:00"
    again = shop.dbt("run", "--select", "ids")
    assert again.code == 0, again.screen
    assert shop.results()["ids"]["adapter_response"]["refresh_action"] == "NO_DATA"
