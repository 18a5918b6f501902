{#- Shows each stream with its consumers: where they are, and how long their changes are kept. -#}
{% macro changes_stream_status(stream=none) %}
  {%- set status = adapter.changes_stream_status(stream) -%}
  {%- do print(adapter.dynamic_table_text(status)) -%}
  {{ return(status) }}
{% endmacro %}
