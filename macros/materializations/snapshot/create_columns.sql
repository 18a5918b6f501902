{#- A snapshot with a key of several columns: dbt-spark would add the helper columns of its staging
    view to the table, and the next run would find each of them twice. -#}
{% macro spark_dynamic__create_columns(relation, columns) %}
  {%- set wanted = [] -%}
  {%- for column in columns if not column.name.lower().startswith('dbt_unique_key_') -%}
    {%- do wanted.append(column) -%}
  {%- endfor -%}
  {{ spark__create_columns(relation, wanted) }}
{% endmacro %}
