{#- A table that stays equal to its query: held or planned, run, reported. Python decides everything. -#}
{% materialization dynamic_table, adapter='spark_dynamic', supported_languages=['sql'] %}
  {%- set request = adapter.dynamic_table_request(model, this, compiled_code, should_full_refresh()) -%}

  {#- Not due, waiting or suspended: nothing is asked or done for it, unless it was reconfigured. -#}
  {%- set held = adapter.dynamic_table_held(request) -%}
  {%- if held -%}
    {%- if adapter.dynamic_table_describe(request) -%}
      {%- do apply_grants(this.incorporate(type='view'), config.get('grants'), should_revoke=True) -%}
    {%- endif -%}
    {%- do store_result('main', response=held) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {#- It comes first: the changes that a query reads are there from here on. -#}
  {%- set refresh = adapter.dynamic_table_plan(request) -%}

  {%- if config.get('contract').enforced -%}
    {%- do get_assert_columns_equivalent(compiled_code) -%}
  {%- endif -%}

  {#- Nothing has happened to it: only grants may have to be applied. -#}
  {%- if refresh.is_quiet -%}
    {%- do store_result('main', response=adapter.dynamic_table_run(refresh)) -%}
    {%- if config.get('grants') -%}
      {%- do apply_grants(this.incorporate(type='view'), config.get('grants'), should_revoke=True) -%}
    {%- endif -%}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {#- Changes may cancel out, which is found out earlier only for a hook. -#}
  {%- if pre_hooks -%}{%- do adapter.dynamic_table_foresee(refresh) -%}{%- endif -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- if refresh.writes and pre_hooks -%}
    {%- set settings = adapter.dynamic_table_settings() -%}
    {{ run_hooks(pre_hooks) }}
    {%- do adapter.dynamic_table_restore_settings(settings) -%}
  {%- endif -%}
  {#- `write` is passed on, so that the statements of a failure are kept, too. -#}
  {%- set response = adapter.dynamic_table_run(refresh, write) -%}
  {%- do store_result('main', response=response) -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=True) -%}
  {%- if refresh.hooks_to_run -%}{{ run_hooks(post_hooks) }}{%- endif -%}
  {#- Last: with --warn-error a warning ends the model. -#}
  {%- do adapter.dynamic_table_warn(refresh, model) -%}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
