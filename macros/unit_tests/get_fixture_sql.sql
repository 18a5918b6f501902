{#- The rows of a unit test's input. As dbt's own, but they may have change columns beside those of the
    relation: changes(ref('x')) yields the rows that are given for ref('x'). -#}
{% macro get_fixture_sql(rows, column_name_to_data_types) %}
  {%- set types = dict(column_name_to_data_types or {}) -%}
  {%- set names = {} -%}
  {%- if not types -%}
    {%- set relation = defer_relation if (defer_relation and not load_relation(this)) else this -%}
    {%- for column in adapter.get_columns_in_relation(relation) -%}
      {%- do types.update({column.name | lower: column.data_type}) -%}
      {%- do names.update({column.name | lower: column.quoted}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if not types -%}
    {{ exceptions.raise_compiler_error("The columns of " ~ this ~ ", an input of a unit test, are not known: it does not exist. Build it first, for instance with --empty.") }}
  {%- endif -%}
  {%- do types.update(adapter.change_columns_of(rows)) -%}
  {{ validate_fixture_rows(rows, row_number) }}
  {%- set selects = [] -%}
  {%- for row in rows or [{}] -%}
    {%- set given = format_row(row, types) -%}
    {%- set values = [] -%}
    {%- for name, type in types.items() -%}
      {%- set value = given[name] if name in given else safe_cast('null', type) | trim -%}
      {%- do values.append(value ~ ' as ' ~ names.get(name, adapter.quote(name))) -%}
    {%- endfor -%}
    {%- do selects.append('select ' ~ values | join(', ')) -%}
  {%- endfor -%}
  {{ selects | join('\nunion all\n') }}{% if not rows %} limit 0{% endif %}
{% endmacro %}
