{#- Delta clones into no table that has rows, so one that is to be replaced goes first. -#}
{% macro spark_dynamic__create_or_replace_clone(this_relation, defer_relation) %}
  {%- set existing = load_cached_relation(this_relation) -%}
  {%- if existing is not none -%}
    {%- do adapter.drop_relation(existing) -%}
  {%- endif -%}
  create table {{ this_relation }} shallow clone {{ defer_relation }}
{% endmacro %}
