{#- A named query whose changes are read with ref() and consumed with stream(). Python decides everything. -#}
{% materialization changes_stream, adapter='spark_dynamic', supported_languages=['sql'] %}
  {%- set target_relation = this.incorporate(type='view') -%}
  {{ run_hooks(pre_hooks) }}

  {%- set built = adapter.changes_stream_build(model, this, compiled_code, should_full_refresh()) -%}
  {%- do store_result('main', response=built.response) -%}
  {%- do write(built.sql) -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=True) -%}
  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
