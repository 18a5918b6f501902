"""Sessions of one process: what one model sets or creates reaches no other."""

import pytest
from dbt.tests.util import run_dbt

NUMBERS = range(8)

OWN_SESSION = """
{% macro claim_session(n) %}
  {% if execute %}
    {% if run_query("set race.key").columns[1].values()[0] != '<undefined>' %}
      {% do exceptions.raise_compiler_error('the session was used before') %}
    {% endif %}
    {% do run_query("set race.key=" ~ n) %}
    {% do run_query("set spark.sql.session.timeZone=+0" ~ n ~ ":00") %}
    {% do run_query("create or replace temporary view mine as select " ~ n ~ " as n") %}
    {% do run_query("select reflect('java.lang.Thread', 'sleep', 700L)") %}
  {% endif %}
{% endmacro %}
"""
RACER = """
{{{{ config(materialized='table') }}}}
{{% do claim_session({n}) %}}
select '${{race.key}}' as key, n, current_timezone() as zone from mine
"""


class TestSessions:
    @pytest.fixture(scope="class")
    def macros(self):
        return {"claim_session.sql": OWN_SESSION}

    @pytest.fixture(scope="class")
    def models(self):
        racers = {f"racer_{n}.sql": RACER.format(n=n) for n in NUMBERS}
        return {**racers, "after.sql": "select current_timezone() as zone"}

    def test_eight_models_on_four_threads_each_see_only_their_own_session(self, project):
        run_dbt(["run", "--threads", "4", "--select", "racer_*"])
        for n in NUMBERS:
            seen = project.run_sql(f"select key, n, zone from {{schema}}.racer_{n}", fetch="one")
            assert tuple(seen) == (str(n), n, f"+0{n}:00")

    def test_settings_end_with_the_model_that_set_them(self, project):
        run_dbt(["run", "--threads", "1", "--select", "racer_1"])
        assert project.run_sql("select current_timezone()", fetch="one")[0] == "UTC"
        assert project.run_sql("show views", fetch="all") == []


JOINED = "select a.id, b.id % 7 as c from range({size}) a join range(2000) b on a.id = b.id"
OLD, NEW = JOINED.format(size=1000), JOINED.format(size=1010)
DIFFERENCES = f"""
{{{{ config(
    materialized='table',
    pre_hook=['set spark.sql.shuffle.partitions=4', 'set spark.sql.autoBroadcastJoinThreshold=-1'],
) }}}}
select 'added' as what, * from ({NEW} except all {OLD})
union all
select 'removed', * from ({OLD} except all {NEW})
"""


class TestUnions:
    """With the settings of Spark 4.2, all 1000 old rows seem to have been removed."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"differences.sql": DIFFERENCES}

    def test_a_difference_both_ways(self, project):
        run_dbt(["run"])
        counted = "select what, count(*) from {schema}.differences group by what"
        assert [tuple(row) for row in project.run_sql(counted, fetch="all")] == [("added", 10)]
