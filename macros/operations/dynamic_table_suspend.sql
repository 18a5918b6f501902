{#- Keeps tables (a model or a list) from being refreshed until they are resumed. -#}
{% macro dynamic_table_suspend(models=none, model=none) %}
  {%- set done = adapter.dynamic_table_suspend(models or model) -%}
  {%- do print(adapter.dynamic_table_text(done)) -%}
  {{ return(done) }}
{% endmacro %}
