{#- Shows what is left of dynamic tables, and removes it unless it is a dry run. -#}
{% macro dynamic_table_prune(tables=none, dry_run=true) %}
  {%- set left = adapter.dynamic_table_prune(tables, dry_run) -%}
  {%- do print(adapter.dynamic_table_text(left)) -%}
  {{ return(left) }}
{% endmacro %}
