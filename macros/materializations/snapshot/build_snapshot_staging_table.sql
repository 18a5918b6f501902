{#- dbt-spark's, but in a view of this session alone: one that all sessions see is replaced by another
    run of the same snapshot, and this run would merge the rows of that one, under its own record. -#}
{% macro spark_build_snapshot_staging_table(strategy, sql, target_relation) %}
  {%- set staging = api.Relation.create(identifier=target_relation.identifier ~ '__dbt_tmp', type='view') -%}
  {%- call statement('build_snapshot_staging_relation') -%}
    {{ create_temporary_view(staging, snapshot_staging_table(strategy, sql, target_relation)) }}
  {%- endcall -%}
  {{ return(staging) }}
{% endmacro %}
