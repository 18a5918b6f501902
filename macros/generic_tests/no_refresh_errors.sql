{#- Fails if the last refresh of a dynamic table failed. -#}
{% test no_refresh_errors(model) %}
  {%- set problems = adapter.dynamic_table_error_problems(model.schema ~ '.' ~ model.identifier) if execute else none -%}
  {{ dynamic_table_rows_found(problems, 'problem') }}
{% endtest %}
