{#- Columns, as dbt's own macros expect; dbt-spark returns rows, and snapshots then wrote NULLs into
    the records of deleted rows (`hard_deletes: new_record`). -#}
{% macro spark_dynamic__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}
