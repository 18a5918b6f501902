{#- Loads a seed in batches: the first replaces what was there, the others add to it. -#}
{% macro spark_dynamic__load_csv_rows(model, agate_table) %}
  {{ return(adapter.load_seed(
      this,
      adapter.seed_columns(model, agate_table),
      agate_table,
      get_batch_size(),
      config.get('file_format') == 'delta'
  )) }}
{% endmacro %}
