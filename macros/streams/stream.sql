{#- Consumes a stream: the changes since this model's last run, as a relation. It is named like a ref. -#}
{% macro stream(name, inner=none) %}
  {%- set relation = ref(name, inner) if inner else ref(name) -%}
  {%- if not execute -%}{{ return(relation) }}{%- endif -%}
  {{ return(adapter.changes_stream_take(model, this, relation, should_full_refresh())) }}
{% endmacro %}
