{# What an experienced person writes: changed keys from the change feed, `since` kept elsewhere. #}

{% macro all_changes(table) -%}
    table_changes('tpch.{{ table }}', {{ var('since')[table] + 1 }})
{%- endmacro %}

{# The new state of what changed; a first build reads the table. #}
{% macro changed_rows(table) -%}
    {%- if is_incremental() -%}
    (
        select * from {{ all_changes(table) }} where _change_type in ('insert', 'update_postimage')
    )
    {%- else -%}
    {{ source('tpch', table) }}
    {%- endif -%}
{%- endmacro %}

{% macro gone(table, keys='l_orderkey, l_linenumber') -%}
    select {{ keys }} from {{ all_changes(table) }} where _change_type = 'delete'
{%- endmacro %}

{# dbt-spark's merge never deletes; a hook has to, if there is anything to delete. #}
{% macro delete_keys(keys, gone) -%}
    {%- if var('deletes') -%}
    merge into {{ this }} as t using (select distinct * from ({{ gone }})) as s
    on {% for key in keys %}t.{{ key }} = s.{{ key }}{{ ' and ' if not loop.last }}{% endfor %}
    when matched then delete
    {%- endif -%}
{%- endmacro %}

{% macro customers_gone() -%}
    select o_custkey from {{ all_changes('orders') }}
    left anti join {{ source('tpch', 'orders') }} as still using (o_custkey)
{%- endmacro %}
