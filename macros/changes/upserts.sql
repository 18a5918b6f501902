{#- The same by key: for each key its new row, or the row that is gone. -#}
{% macro upserts(relation_or_sql, since, until=none, bound='strict', unique_key=none, mode=none, initial_rows=false, row_keys=none) %}
  {{- return(adapter.changes_sql(
    relation_or_sql, since, until=until, mode=mode, bound=bound, initial_rows=initial_rows,
    unique_key=unique_key, row_keys=row_keys, model=model, as_upserts=true
  )) -}}
{% endmacro %}
