{#- A seed keeps its table: the rows are overwritten in place, so its readers see a change and
    not a new table. Only other columns or another format make a new one. -#}
{% macro spark_dynamic__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {% if not old_relation.is_delta or config.get('file_format') != 'delta' %}
    {% do adapter.drop_relation(old_relation) %}
  {% endif %}
  {{ return(create_csv_table(model, agate_table)) }}
{% endmacro %}
