{#- A changelog back into a table: its changes added up, or the last row of each key. -#}
{% macro integrate(changelog, columns=none, unique_key=none, order_by=none, deletes=none) %}
  {{- return(adapter.integrate_sql(
    changelog, columns=columns, unique_key=unique_key, order_by=order_by, deletes=deletes,
    model=model
  )) -}}
{% endmacro %}
