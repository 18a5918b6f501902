{#- Shows one line per dynamic table of a selection: what would a run do with it? -#}
{% macro dynamic_table_plan(select=none, exclude=none) %}
  {%- set forecast = adapter.dynamic_table_forecast(select, exclude) -%}
  {%- do print(dynamic_table_shown(forecast)) -%}
  {{ return(forecast) }}
{% endmacro %}
