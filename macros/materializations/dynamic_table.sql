{#- A table that stays equal to its query: held or planned, run, reported. Python decides everything. -#}
{% materialization dynamic_table, adapter='spark_dynamic', supported_languages=['sql'] %}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set request = adapter.dynamic_table_request(model, this, compiled_code, should_full_refresh()) -%}

  {#- Not due, waiting or suspended: nothing is asked or done for it. -#}
  {%- set held = adapter.dynamic_table_held(request) -%}
  {%- if held -%}
    {%- do store_result('main', response=held) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {#- It comes first: the changes that a query reads are there from here on. -#}
  {%- set refresh = adapter.dynamic_table_plan(request) -%}

  {%- if config.get('contract').enforced -%}
    {%- do get_assert_columns_equivalent(compiled_code) -%}
  {%- endif -%}

  {%- if refresh.writes -%}{{ run_hooks(pre_hooks) }}{%- endif -%}
  {%- set response = adapter.dynamic_table_run(refresh) -%}
  {%- do store_result('main', response=response) -%}
  {%- do write(refresh.sql) -%}

  {%- if refresh.builds_storage -%}
    {%- do persist_constraints(dynamic_table_storage(this), model) -%}
  {%- endif -%}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=True) -%}
  {%- if refresh.writes -%}{{ run_hooks(post_hooks) }}{%- endif -%}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
