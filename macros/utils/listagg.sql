{#- dbt-spark joins in any order; Spark 4 can be told one. A limit needs a list to cut, so the
    text is taken apart again at a character that texts do not have. -#}
{% macro spark_dynamic__listagg(measure, delimiter_text, order_by_clause, limit_num) %}
  {%- if not order_by_clause -%}
    {{ spark__listagg(measure, delimiter_text, none, limit_num) }}
  {%- elif not limit_num -%}
    listagg({{ measure }}, {{ delimiter_text }}) within group ({{ order_by_clause }})
  {%- else -%}
    array_join(
      slice(
        split(listagg({{ measure }}, chr(31)) within group ({{ order_by_clause }}), chr(31)),
        1,
        {{ limit_num }}
      ),
      {{ delimiter_text }}
    )
  {%- endif -%}
{% endmacro %}
