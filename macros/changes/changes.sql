{#- What changed in a relation or a query between two points, as a relation: `from {{ changes(…) }}`. -#}
{% macro changes(relation_or_sql, since, until=none, mode=none, bound='strict', initial_rows=false, unique_key=none, row_keys=none) %}
  {{- return(adapter.changes_sql(
    relation_or_sql, since, until=until, mode=mode, bound=bound, initial_rows=initial_rows,
    unique_key=unique_key, row_keys=row_keys, model=model
  )) -}}
{% endmacro %}
