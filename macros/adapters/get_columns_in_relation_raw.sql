{#- Under `--empty` and `--sample` a relation is written as a subquery, which cannot be described. -#}
{% macro spark_dynamic__get_columns_in_relation_raw(relation) %}
  {%- call statement('get_columns_in_relation_raw', fetch_result=True) -%}
    describe extended {{ relation.render() }}
  {%- endcall -%}
  {{ return(load_result('get_columns_in_relation_raw').table) }}
{% endmacro %}
