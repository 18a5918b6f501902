{#- What Python found, as the query that a test counts: one row for each, or none. -#}
{% macro dynamic_table_rows_found(found, column) %}
  select *
  from (
    {%- for row in (found.rows if found else []) %}
    select '{{ row.values() | join(' | ') | replace("\\", "\\\\") | replace("'", "\\'") }}' as {{ column }}
    {%- if not loop.last %} union all{% endif -%}
    {%- else %}
    select cast(null as string) as {{ column }} where false
    {%- endfor %}
  )
{% endmacro %}
