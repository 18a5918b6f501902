{#- A table as text: one line per row, longer texts below each other. -#}
{% macro dynamic_table_shown(table) %}
  {%- set lines = [table.column_names | join(' | ')] -%}
  {%- for row in table.rows -%}{%- do lines.append(row.values() | join(' | ')) -%}{%- endfor -%}
  {{ return(lines | join('\n')) }}
{% endmacro %}
