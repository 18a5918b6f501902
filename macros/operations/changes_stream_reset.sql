{#- Lets a stream, or all its streams, be new to a consumer: the next run takes it from its start. -#}
{% macro changes_stream_reset(consumer, stream=none) %}
  {%- set position = adapter.changes_stream_reset(consumer, stream) -%}
  {%- do print(adapter.dynamic_table_text(position)) -%}
  {{ return(position) }}
{% endmacro %}
