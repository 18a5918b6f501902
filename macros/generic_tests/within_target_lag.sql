{#- Fails if a dynamic table is further behind its sources than its target lag allows. -#}
{% test within_target_lag(model) %}
  {%- set problems = adapter.dynamic_table_lag_problems(model.schema ~ '.' ~ model.identifier) if execute else none -%}
  {{ dynamic_table_rows_found(problems, 'problem') }}
{% endtest %}
