{#- Shows how each dynamic table stands: its lag, its target, when it is due next. -#}
{% macro dynamic_table_status(models=none, model=none) %}
  {%- set status = adapter.dynamic_table_status(models or model) -%}
  {%- do print(adapter.dynamic_table_text(status)) -%}
  {{ return(status) }}
{% endmacro %}
