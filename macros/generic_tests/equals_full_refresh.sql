{#- Fails with the rows in which a dynamic table and its query, at the recorded cut, differ. -#}
{% test equals_full_refresh(model) %}
  {%- set differing = adapter.dynamic_table_verify(model.schema ~ '.' ~ model.identifier) if execute else none -%}
  {{ dynamic_table_rows_found(differing, 'difference') }}
{% endtest %}
