{#- How many boundaries lie between two moments; a week begins on Sunday, as in dbt-spark. Its own
    version parses texts in ways that ANSI mode refuses, and fills a view with 4 KB per call. -#}
{% macro spark_dynamic__datediff(first_date, second_date, datepart) %}
  {%- set shift = ' + interval 1 day' if datepart | lower == 'week' else '' -%}
  timestampdiff(
    {{ datepart }},
    date_trunc('{{ datepart }}', cast({{ first_date }} as timestamp){{ shift }}),
    date_trunc('{{ datepart }}', cast({{ second_date }} as timestamp){{ shift }})
  )
{% endmacro %}
