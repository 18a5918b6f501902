{#- Shows what a refresh of a model would do, and how, without doing it. -#}
{% macro dynamic_table_explain(model) %}
  {%- set lines = adapter.dynamic_table_explain(model) -%}
  {%- do print(dynamic_table_shown(lines)) -%}
  {{ return(lines) }}
{% endmacro %}

{#- The same under its short name. -#}
{% macro explain(model) %}
  {{ return(dynamic_table_explain(model)) }}
{% endmacro %}
