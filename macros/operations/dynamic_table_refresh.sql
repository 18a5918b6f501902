{#- Refreshes tables (a model or a list) now, with the dynamic tables that they are made of. -#}
{% macro dynamic_table_refresh(models=none, model=none) %}
  {%- set done = adapter.dynamic_table_refresh(models or model) -%}
  {%- do print(adapter.dynamic_table_text(done)) -%}
  {{ return(done) }}
{% endmacro %}
