{#- Runs statements one after the other, as a system outside dbt would. -#}
{% macro run_statements(statements) %}
    {% for statement in statements %}
        {% do run_query(statement) %}
    {% endfor %}
{% endmacro %}
