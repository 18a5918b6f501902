{#- Lets a consumer go on from another point of a stream, or of all its streams. -#}
{% macro changes_stream_move(consumer, to, stream=none) %}
  {%- set position = adapter.changes_stream_move(consumer, stream, to) -%}
  {%- do print(adapter.dynamic_table_text(position)) -%}
  {{ return(position) }}
{% endmacro %}
