{#- What cannot be cast becomes NULL; in ANSI mode a plain cast, as in dbt-spark, would fail. -#}
{% macro spark_dynamic__safe_cast(field, type) %}
  {{- spark__safe_cast(field, type) | trim | replace('cast(', 'try_cast(', 1) -}}
{% endmacro %}
