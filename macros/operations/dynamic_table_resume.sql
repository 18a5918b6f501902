{#- Lets suspended tables (a model or a list) be refreshed again; errors count anew. -#}
{% macro dynamic_table_resume(models=none, model=none) %}
  {%- set done = adapter.dynamic_table_resume(models or model) -%}
  {%- do print(adapter.dynamic_table_text(done)) -%}
  {{ return(done) }}
{% endmacro %}
