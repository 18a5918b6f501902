{#- The same by key: for each key its new row, or the row that is gone. -#}
{% macro upserts(relation_or_sql, since, until=none, bound='strict', unique_key=none) %}
  {{- return(adapter.changes_sql(
    relation_or_sql, since, until=until, bound=bound, unique_key=unique_key, model=model,
    as_upserts=true
  )) -}}
{% endmacro %}
