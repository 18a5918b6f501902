{#- dbt's own, but that the main statement goes through the adapter: that of a stream's consumer
    carries the record of what it consumed. No other statement does, hooks least of all. -#}
{% macro statement(name=none, fetch_result=false, auto_begin=true, language='sql') %}
  {%- if execute -%}
    {%- set code = caller() -%}
    {%- if name == 'main' -%}
      {%- do log('Writing runtime ' ~ language ~ ' for node "' ~ model['unique_id'] ~ '"') -%}
      {%- do write(code) -%}
    {%- endif -%}
    {%- set table = none -%}
    {%- if language == 'python' -%}
      {%- set response = submit_python_job(model, code) -%}
    {%- elif language != 'sql' -%}
      {%- do exceptions.raise_compiler_error("A statement is written in sql or python, not in '" ~ language ~ "'.") -%}
    {%- elif name == 'main' -%}
      {%- set response, table = adapter.execute_main(model, code, auto_begin, fetch_result) -%}
    {%- else -%}
      {%- set response, table = adapter.execute(code, auto_begin=auto_begin, fetch=fetch_result) -%}
    {%- endif -%}
    {%- if name is not none -%}
      {%- do store_result(name, response=response, agate_table=table) -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
