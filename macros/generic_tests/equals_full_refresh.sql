{#- Fails with the rows in which a dynamic table and its query, at the recorded cut, differ. -#}
{% test equals_full_refresh(model) %}
  {%- set differing = adapter.dynamic_table_verify(model.identifier) if execute else none -%}
  {%- set rows = differing.rows if differing else [] -%}
  select *
  from (
    {%- for row in rows %}
    select '{{ row.values() | join(' | ') | replace("\\", "\\\\") | replace("'", "\\'") }}' as difference
    {%- if not loop.last %} union all{% endif -%}
    {%- else %}
    select cast(null as string) as difference where false
    {%- endfor %}
  )
{% endtest %}
