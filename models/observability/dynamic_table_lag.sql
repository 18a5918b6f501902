{#- How far each dynamic table of the project is behind, over the last seven days. Target lags and
    periods are those of the run that built the view; lags are as of when it is read. -#}
{{ config(materialized='view') }}

{%- set schema = target.state_schema or target.schema -%}
{%- set state_table = none -%}
{%- set targets = [] -%}
{%- if execute -%}
  {%- set state_table = adapter.get_relation(none, schema, 'dynamic_table_refreshes') -%}
  {%- set targets = adapter.dynamic_table_targets().rows -%}
{%- endif %}

with targets as (
{%- for row in targets %}
    select
        '{{ row[0] }}' as relation,
        cast({{ row[1] or 'null' }} as bigint) as target_lag_seconds,
        cast({{ row[2] or 'null' }} as bigint) as period_seconds
    {%- if not loop.last %} union all{% endif -%}
{%- else %}
    select
        cast(null as string) as relation,
        cast(null as bigint) as target_lag_seconds,
        cast(null as bigint) as period_seconds
    where false
{%- endfor %}
),

refreshes as (
{%- if state_table %}
    select relation, data_timestamp, ended_at
    from {{ state_table }}
    where state = 'SUCCEEDED'
        and refresh_action in ('FULL', 'REINITIALIZE', 'INCREMENTAL', 'NO_DATA', 'COVERED')
        and data_timestamp is not null
        and ended_at >= current_timestamp() - interval 7 days
{%- else %}
    select
        cast(null as string) as relation,
        cast(null as timestamp) as data_timestamp,
        cast(null as timestamp) as ended_at
    where false
{%- endif %}
),

compared as (
    select
        relation,
        data_timestamp,
        ended_at,
        max(data_timestamp) over (
            partition by relation
            order by ended_at, data_timestamp
            rows between unbounded preceding and 1 preceding
        ) as newest_before
    from refreshes
),

-- The lag rises from the end of one refresh with newer data to the end of the next.
teeth as (
    select
        relation,
        data_timestamp,
        ended_at as begins_at,
        coalesce(
            lead(ended_at) over (partition by relation order by ended_at, data_timestamp),
            current_timestamp()
        ) as ends_at
    from compared
    where newest_before is null or data_timestamp > newest_before
),

measured as (
    select
        relation,
        data_timestamp,
        (unix_micros(begins_at) - unix_micros(data_timestamp)) / 1e6 as trough,
        (unix_micros(ends_at) - unix_micros(data_timestamp)) / 1e6 as peak,
        (unix_micros(ends_at) - unix_micros(begins_at)) / 1e6 as length
    from teeth
)

select
    targets.relation,
    targets.target_lag_seconds,
    max(measured.data_timestamp) as data_timestamp,
    (unix_micros(current_timestamp()) - unix_micros(max(measured.data_timestamp))) / 1e6
        as lag_seconds,
    timestamp_seconds(
        (floor(unix_seconds(max(measured.data_timestamp)) / targets.period_seconds) + 1)
        * targets.period_seconds
    ) as next_due,
    max(measured.peak) as peak_lag_seconds,
    min(measured.trough) as trough_lag_seconds,
    -- `least` passes over nulls, so a table without a target has to be left out by name.
    case when targets.target_lag_seconds is not null then
        sum(greatest(least(measured.length, targets.target_lag_seconds - measured.trough), 0))
        / nullif(sum(measured.length), 0)
    end as share_within_target,
    count(measured.data_timestamp) as refreshes
from targets
left join measured on targets.relation = measured.relation
group by targets.relation, targets.target_lag_seconds, targets.period_seconds
