{#- The Delta table behind a dynamic table: for hooks, OPTIMIZE and time travel. -#}
{% macro dynamic_table_storage(relation) %}
  {{ return(adapter.dynamic_table_storage(relation)) }}
{% endmacro %}
