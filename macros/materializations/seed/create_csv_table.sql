{#- Makes the table, or leaves one alone that already has these columns: `load_csv_rows` then
    replaces its rows. -#}
{% macro spark_dynamic__create_csv_table(model, agate_table) %}
  {%- if config.get('file_format') != 'delta' -%}
    {{ return(spark__create_csv_table(model, agate_table)) }}
  {%- endif -%}
  {%- set columns = adapter.seed_columns(model, agate_table) -%}
  {%- set sql -%}
    create or replace table {{ this }} ({{ columns | map('join', ' ') | join(', ') }})
    {{ file_format_clause() }}
    {{ partition_cols(label='partitioned by') }}
    {{ location_clause() }}
    {{ comment_clause() }}
    {{ tblproperties_clause() }}
  {%- endset -%}
  {%- if not adapter.make_seed_table(this, columns, sql) and agate_table.rows | length == 0 -%}
    {% call statement('_') %}truncate table {{ this }}{% endcall %}
  {%- endif -%}
  {{ return(sql) }}
{% endmacro %}
