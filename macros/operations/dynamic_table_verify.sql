{#- Compares a dynamic table with its query at the recorded cut; fails if a row differs. -#}
{% macro dynamic_table_verify(model) %}
  {%- set differing = adapter.dynamic_table_verify(model) -%}
  {%- do print(dynamic_table_shown(differing)) -%}
  {%- if differing.rows | length > 0 -%}
    {%- do exceptions.raise_compiler_error(
      "NOT_EQUAL: " ~ model ~ " differs from its query in " ~ (differing.rows | length) ~ " rows."
    ) -%}
  {%- endif -%}
  {%- do print(model ~ " equals its query.") -%}
  {{ return(differing) }}
{% endmacro %}

{#- The same under its short name. -#}
{% macro verify(model) %}
  {{ return(dynamic_table_verify(model)) }}
{% endmacro %}
