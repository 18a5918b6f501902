{#- dbt's own: dbt-spark's would also ask views for a file format. -#}
{% materialization clone, adapter='spark_dynamic' %}
  {{ return(materialization_clone_default()) }}
{% endmaterialization %}
