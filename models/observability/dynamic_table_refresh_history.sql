{#- What happened to every dynamic table, and how long it took. The state table is made at the
    end of the first run that has a dynamic table; before that, this view has no rows. -#}
{{ config(materialized='view') }}

{%- set schema = target.state_schema or target.schema -%}
{%- set state_table = none -%}
{%- if execute -%}
  {%- set state_table = adapter.get_relation(none, schema, 'dynamic_table_refreshes') -%}
{%- endif %}

with refreshes as (
{%- if state_table %}
    select * from {{ state_table }}
{%- else %}
    select
        cast(null as string) as relation,
        cast(null as string) as model_id,
        cast(null as bigint) as refresh_number,
        cast(null as string) as invocation_id,
        cast(null as timestamp) as data_timestamp,
        cast(null as string) as refresh_action,
        cast(null as string) as refresh_mode,
        cast(null as string) as refresh_trigger,
        cast(null as string) as state,
        cast(null as string) as reason_code,
        cast(null as string) as reason,
        cast(null as bigint) as version,
        cast(null as bigint) as rows_inserted,
        cast(null as bigint) as rows_deleted,
        cast(null as timestamp) as started_at,
        cast(null as timestamp) as ended_at,
        cast(null as string) as error,
        cast(null as string) as engine_version
    where false
{%- endif %}
)

select
    relation,
    row_number() over (partition by relation order by ended_at desc, started_at desc) as recency,
    state,
    refresh_action,
    reason_code,
    reason,
    error,
    rows_inserted,
    rows_deleted,
    started_at,
    ended_at,
    (unix_micros(ended_at) - unix_micros(started_at)) / 1e6 as duration_seconds,
    data_timestamp,
    (unix_micros(ended_at) - unix_micros(data_timestamp)) / 1e6 as lag_seconds,
    refresh_mode,
    refresh_trigger,
    refresh_number,
    version,
    model_id,
    invocation_id,
    engine_version
from refreshes
order by relation, recency
