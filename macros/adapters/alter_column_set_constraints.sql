{#- Delta cannot make a column of an existing table NOT NULL; a check constraint that says the
    same is enforced on every write. -#}
{% macro spark_dynamic__alter_column_set_constraints(relation, column_dict) %}
  {%- for name, column in column_dict.items() -%}
    {%- for constraint in column.constraints -%}
      {%- if constraint.type == 'not_null' -%}
        {%- call statement() -%}
          alter table {{ relation }} add constraint not_null_{{ local_md5(name)[:8] }}
          check ({{ adapter.quote(name) }} is not null)
        {%- endcall -%}
      {%- else -%}
        {%- do exceptions.warn('Constraint ' ~ constraint.type ~ ' of column ' ~ name ~ ' is not enforced. Only `not_null` is.') -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endfor -%}
{% endmacro %}
