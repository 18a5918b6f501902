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
        cast({{ row[2] or 'null' }} as bigint) as period_seconds,
        cast({{ row[3] or 'null' }} as bigint) as suspend_after
    {%- if not loop.last %} union all{% endif -%}
{%- else %}
    select
        cast(null as string) as relation,
        cast(null as bigint) as target_lag_seconds,
        cast(null as bigint) as period_seconds,
        cast(null as bigint) as suspend_after
    where false
{%- endfor %}
),

events as (
{%- if state_table %}
    select relation, state, refresh_action, data_timestamp, ended_at, error
    from {{ state_table }}
    -- What ended later was dated by a clock that was ahead.
    where ended_at <= current_timestamp() + interval 5 minutes
{%- else %}
    select
        cast(null as string) as relation,
        cast(null as string) as state,
        cast(null as string) as refresh_action,
        cast(null as timestamp) as data_timestamp,
        cast(null as timestamp) as ended_at,
        cast(null as string) as error
    where false
{%- endif %}
),

successes as (
    select relation, data_timestamp, ended_at
    from events
    where state = 'SUCCEEDED'
        and refresh_action in ('FULL', 'REINITIALIZE', 'INCREMENTAL', 'NO_DATA', 'COVERED')
        and data_timestamp is not null
),

-- Those of the last seven days, and what each table had when these began.
refreshes as (
    select relation, data_timestamp, ended_at, 1 as is_recent
    from successes
    where ended_at >= current_timestamp() - interval 7 days
    union all
    select
        relation,
        max(data_timestamp) as data_timestamp,
        current_timestamp() - interval 7 days as ended_at,
        0 as is_recent
    from successes
    where ended_at < current_timestamp() - interval 7 days
    group by relation
),

compared as (
    select
        relation,
        data_timestamp,
        ended_at,
        is_recent,
        max(data_timestamp) over (
            partition by relation
            order by is_recent, ended_at, data_timestamp
            rows between unbounded preceding and 1 preceding
        ) as newest_before
    from refreshes
),

-- The lag rises from the end of one refresh with newer data to the end of the next.
teeth as (
    select
        relation,
        data_timestamp,
        is_recent,
        ended_at as begins_at,
        coalesce(
            lead(ended_at) over (
                partition by relation order by is_recent, ended_at, data_timestamp
            ),
            current_timestamp()
        ) as ends_at
    from compared
    where newest_before is null or data_timestamp > newest_before
),

measured as (
    select
        relation,
        data_timestamp,
        is_recent,
        (unix_micros(begins_at) - unix_micros(data_timestamp)) / 1e6 as trough,
        (unix_micros(ends_at) - unix_micros(data_timestamp)) / 1e6 as peak,
        (unix_micros(ends_at) - unix_micros(begins_at)) / 1e6 as length
    from teeth
),

-- The last time that all was well, and what a person last said.
turns as (
    select
        relation,
        max(case when state = 'SUCCEEDED' and refresh_action in (
            'FULL', 'REINITIALIZE', 'INCREMENTAL', 'NO_DATA', 'COVERED', 'RESUMED'
        ) then ended_at end) as well_at,
        max(case when refresh_action = 'SUSPENDED' then ended_at end) as suspended_at,
        max(case when refresh_action = 'RESUMED' then ended_at end) as resumed_at,
        -- Written only of tables that the schedule builds, when a run first meets them.
        max(case when refresh_action = 'NOT_DUE' then ended_at end) as met_at
    from events
    group by relation
),

troubles as (
    select
        turns.relation,
        max(turns.suspended_at > coalesce(turns.resumed_at, timestamp '1970-01-01 00:00:00'))
            as is_suspended,
        max(turns.met_at) as met_at,
        count(failures.ended_at) as errors_in_a_row,
        max_by(failures.error, failures.ended_at) as last_error
    from turns
    left join events as failures
        on turns.relation = failures.relation
        and failures.state = 'FAILED'
        and (turns.well_at is null or failures.ended_at > turns.well_at)
    group by turns.relation
),

numbers as (
    select
        targets.relation,
        max(measured.data_timestamp) as data_timestamp,
        max(measured.peak) as peak_lag_seconds,
        min(measured.trough) as trough_lag_seconds,
        sum(greatest(least(measured.length, targets.target_lag_seconds - measured.trough), 0))
        / nullif(sum(measured.length), 0) as share_within_target,
        coalesce(sum(measured.is_recent), 0) as refreshes
    from targets
    left join measured on targets.relation = measured.relation
    group by targets.relation
),

states as (
    select
        targets.relation,
        case
            when troubles.is_suspended then 'SUSPENDED_BY_A_PERSON'
            when targets.suspend_after > 0 and troubles.errors_in_a_row >= targets.suspend_after
                then 'SUSPENDED_BY_ERRORS'
            when troubles.errors_in_a_row > 0 then 'FAILED'
            when numbers.data_timestamp is null then 'MISSING'
            else 'SUCCEEDED'
        end as state,
        timestamp_seconds(
            (
                floor(
                    unix_seconds(coalesce(numbers.data_timestamp, troubles.met_at))
                    / targets.period_seconds
                ) + 1
            ) * targets.period_seconds
        ) as next_point
    from targets
    join numbers on targets.relation = numbers.relation
    left join troubles on targets.relation = troubles.relation
)

select
    targets.relation,
    states.state,
    targets.target_lag_seconds,
    numbers.data_timestamp,
    (unix_micros(current_timestamp()) - unix_micros(numbers.data_timestamp)) / 1e6 as lag_seconds,
    case
        when states.state in ('SUSPENDED_BY_A_PERSON', 'SUSPENDED_BY_ERRORS') then null
        when states.state = 'FAILED' then current_timestamp()
        when states.state = 'MISSING' then coalesce(states.next_point, current_timestamp())
        else states.next_point
    end as next_due,
    numbers.peak_lag_seconds,
    numbers.trough_lag_seconds,
    -- `least` passes over nulls, so a table without a target has to be left out by name.
    case when targets.target_lag_seconds is not null then numbers.share_within_target end
        as share_within_target,
    numbers.refreshes,
    coalesce(troubles.errors_in_a_row, 0) as errors_in_a_row,
    troubles.last_error
from targets
join numbers on targets.relation = numbers.relation
join states on targets.relation = states.relation
left join troubles on targets.relation = troubles.relation
