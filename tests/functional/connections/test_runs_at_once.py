"""Two `dbt run`s at once on one server: both succeed, and every change arrives once."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.functional.connections.processes import DbtProject, Finished, finish
from tests.functional.connections.thrift_server import thrift_server

# Both runs share the server's JVM, so its system properties can tell one that the other has come.
MEET = """
{% macro meet() %}
  {% if execute and var('me', none) %}
    {% set place = "'meet." ~ var('round') ~ '.' ~ model.name ~ '.' %}
    {% set come = place ~ var('me') ~ "', 'here'" %}
    {% set has_come = place ~ {'one': 'two', 'two': 'one'}[var('me')] ~ "'" %}
    {% do run_query("select reflect('java.lang.System', 'setProperty', " ~ come ~ ")") %}
    {% set seen = namespace(other=false) %}
    {% for _ in range(150) if not seen.other %}
      {% set asked = "select reflect('java.lang.System', 'getProperty', " ~ has_come ~ ")" %}
      {% set said = run_query(asked) %}
      {% if said.columns[0].values()[0] == 'here' %}
        {% set seen.other = true %}
      {% else %}
        {% do run_query("select reflect('java.lang.Thread', 'sleep', 100L)") %}
      {% endif %}
    {% endfor %}
    {% if not seen.other %}
      {% do exceptions.raise_compiler_error('the other run did not come to ' ~ model.name) %}
    {% endif %}
  {% endif %}
{% endmacro %}
{% macro run_all(statements) %}
  {% for statement in statements %}{% do run_query(statement) %}{% endfor %}
{% endmacro %}
"""
STREAM = """{{ config(materialized='changes_stream', unique_key='id') }}
select id, name from trial.people"""
TAKEN = "from {{ stream('people_stream') }}"
MODELS = {
    "people_stream": STREAM,
    "appended": "{{ config(materialized='incremental', incremental_strategy='append') }} "
    f"select id, name, change_action {TAKEN}",
    "merged": "{{ config(materialized='incremental', incremental_strategy='merge', "
    f"unique_key='id') }}}} select id, name {TAKEN} where change_action = 'INSERT'",
    "last_batch": f"{{{{ config(materialized='table') }}}} select id, name, change_action {TAKEN}",
    "copied": "{{ config(materialized='table') }} select id, name from trial.people",
    "shown": "{{ config(materialized='view') }} select id from trial.people",
    "people_now": "{{ config(materialized='dynamic_table') }} "
    "select name, count(*) as n from trial.people group by name",
}
HISTORY = f"""{{% snapshot history %}}
{{{{ config(unique_key='id', strategy='check', check_cols=['name']) }}}}
select id, name {TAKEN} where change_action = 'INSERT'
{{% endsnapshot %}}"""
CONSUMERS = ("appended", "merged", "last_batch", "history")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with thrift_server(tmp_path_factory.mktemp("thrift")) as number:
        yield number


class TwoRuns:
    """A project that two processes build at the same moment."""

    def __init__(self, shop: DbtProject, port: int) -> None:
        self.shop = shop
        self.round = 0
        shop.use_profile(method="thrift", host="127.0.0.1", port=port, user="dbt", threads=8)
        shop.write("macros/meet.sql", MEET)
        shop.write(
            "dbt_project.yml",
            json.dumps(
                {
                    "name": "shop",
                    "profile": "shop",
                    "models": {"+pre-hook": "{{ meet() }}"},
                    "seeds": {"+pre-hook": "{{ meet() }}"},
                    "snapshots": {"+pre-hook": "{{ meet() }}", "+target_schema": "trial"},
                }
            ),
        )
        for name, text in MODELS.items():
            shop.write(f"models/{name}.sql", text)
        shop.write("snapshots/history.sql", HISTORY)
        shop.write("seeds/colours.csv", "id,colour\n1,red\n2,blue\n")

    def run_all(self, *statements: str) -> None:
        arguments = json.dumps({"statements": statements})
        done = self.shop.dbt("run-operation", "run_all", "--args", arguments)
        assert done.code == 0, done.screen

    def both(self, *command: str) -> dict[str, tuple[str, ...]]:
        """Run one command in two processes; return what each said of each node."""
        self.round += 1
        started = []
        for me in ("one", "two"):
            variables = json.dumps({"me": me, "round": self.round})
            places = ("--target-path", f"target_{me}", "--log-path", f"logs_{me}")
            started.append(self.shop.start(*command, *places, "--vars", variables))
        ended: list[Finished] = [finish(process) for process in started]
        for one in ended:
            assert one.code == 0, "\n".join(both.screen + both.errors for both in ended)
        found = [self.shop.results(f"target_{me}") for me in ("one", "two")]
        return {name: tuple(sorted(_said(run[name]) for run in found)) for name in found[0]}

    def told(self, answers: dict[str, str]) -> dict[str, str]:
        arguments = json.dumps({"answers": answers})
        return self.shop.dbt("run-operation", "tell", "--args", arguments).told


def _said(result: dict[str, Any]) -> str:
    response = result["adapter_response"]
    keys = "consumption_action", "refresh_action", "stream_action"
    return next((response[key] for key in keys if response.get(key)), "")


@pytest.fixture
def runs(shop: DbtProject, port: int) -> TwoRuns:
    return TwoRuns(shop, port)


def rows(table: str, *columns: str) -> str:
    """Return a query for all rows of a table, in one text."""
    row = "concat_ws(' ', " + ", ".join(f"cast({column} as string)" for column in columns) + ")"
    return f"select concat_ws(', ', sort_array(collect_list({row}))) from trial.{table}"


CONTENTS = {
    "appended": rows("appended", "id", "name", "change_action"),
    "merged": rows("merged", "id", "name"),
    "last_batch": rows("last_batch", "id", "name", "change_action"),
    "history": rows("history", "id", "name", "dbt_valid_to is null"),
    "people_now": rows("people_now", "name", "n"),
    "copied": rows("copied", "id", "name"),
    "colours": rows("colours", "id", "colour"),
}


def test_each_change_arrives_once_in_consumers_of_every_kind(runs: TwoRuns) -> None:
    runs.run_all(
        "create schema if not exists trial",
        "create table trial.people (id int, name string) using delta "
        "tblproperties ('delta.enableChangeDataFeed' = 'true')",
        "insert into trial.people values (1, 'Ada'), (2, 'Bob')",
    )
    # Everything is made for the first time, by both.
    said = runs.both("build")
    assert said["people_stream"] == ("STARTED", "STREAM")
    assert "FULL" in said["people_now"]
    assert {name: said[name] for name in CONSUMERS} == dict.fromkeys(
        CONSUMERS, ("CONSUMED", "COVERED")
    )
    assert runs.told(CONTENTS) == {
        "appended": "1 Ada INSERT, 2 Bob INSERT",
        "merged": "1 Ada, 2 Bob",
        "last_batch": "1 Ada INSERT, 2 Bob INSERT",
        "history": "1 Ada true, 2 Bob true",
        "people_now": "Ada 1, Bob 1",
        "copied": "1 Ada, 2 Bob",
        "colours": "1 red, 2 blue",
    }

    runs.run_all(
        "insert into trial.people values (3, 'Cy')",
        "update trial.people set name = 'Ann' where id = 1",
    )
    said = runs.both("build")
    assert {name: said[name] for name in CONSUMERS} == dict.fromkeys(
        CONSUMERS, ("CONSUMED", "COVERED")
    )
    assert runs.told(CONTENTS) == {
        "appended": "1 Ada DELETE, 1 Ada INSERT, 1 Ann INSERT, 2 Bob INSERT, 3 Cy INSERT",
        "merged": "1 Ann, 2 Bob, 3 Cy",
        "last_batch": "1 Ada DELETE, 1 Ann INSERT, 3 Cy INSERT",
        "history": "1 Ada false, 1 Ann true, 2 Bob true, 3 Cy true",
        "people_now": "Ann 1, Bob 1, Cy 1",
        "copied": "1 Ann, 2 Bob, 3 Cy",
        "colours": "1 red, 2 blue",
    }
