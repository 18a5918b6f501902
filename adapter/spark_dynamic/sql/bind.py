"""From a query's text to its plan: every name becomes a column of a scan.

Only what the plan can express is taken; all else raises NotIncremental with the reason. Types
play no part here: Spark knows them.
"""

import re
from collections.abc import Callable, Mapping
from itertools import count

from sqlglot import exp

from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import (
    Expression,
    Field,
    Output,
    Plan,
    Project,
    Query,
    Scan,
    UnionAll,
    column,
)
from spark_dynamic.plan.normalise import filtered, joined, without_unused_columns
from spark_dynamic.sql import grouping
from spark_dynamic.sql.dialect import SparkDynamic, parsed
from spark_dynamic.sql.measures import is_aggregate
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.pin import ViewQuery
from spark_dynamic.sql.references import table_name
from spark_dynamic.sql.refuse import (
    refuse_aggregates,
    refuse_other_expressions,
    refuse_other_parts,
)
from spark_dynamic.sql.scope import Aliases, Named, Scope
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column

TableColumns = Callable[[TableName], tuple[Column, ...]]

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}")
# Common tables that read others twice may come to any number.
_MOST_SCANS = 2_000


def bind(text: Text, schema: str, columns_of: TableColumns) -> Query:
    """Return the plan of a query."""
    binder = Binder(columns_of)
    plan, columns = binder.text(text, schema)
    ids = tuple(named.id for named in columns)
    names = tuple(named.name or "" for named in columns)
    pruned = without_unused_columns(plan, set(ids))
    return Query(pruned, names, ids, len(binder.aggregations))


class Binder:
    """Gives out ids while it walks through texts."""

    def __init__(self, columns_of: TableColumns) -> None:
        self._columns_of = columns_of
        self._numbers = count(1)
        self._scans = 0
        self.aggregations: set[int] = set()
        # Keeps every tree alive, so that the identities above stay unique.
        self._trees: list[Expression] = []

    def fresh(self, name: str | None) -> str:
        """Return an id that nothing else has, readable where the name allows it."""
        stem = name.lower() if name and _PLAIN.fullmatch(name) else "column"
        return f"{stem}_{next(self._numbers)}"

    def text(self, text: Text, schema: str) -> tuple[Plan, list[Named]]:
        """Bind a text; views that it reads are bound by their own texts."""
        # A tree of its own: two readings of one view are two aggregations.
        tree = parsed(text.text).copy()
        self._trees.append(tree)
        return _TextBinder(self, text, schema).query(tree, {})

    def scan(self, table: TableName) -> tuple[Plan, list[Named]]:
        """Return a scan of all columns of a table."""
        self._scans += 1
        if self._scans > _MOST_SCANS:
            raise NotIncremental(
                "DELTA_TOO_LARGE", f"statements that read tables more than {_MOST_SCANS:,} times"
            )
        fields = tuple(
            Field(self.fresh(known.name), known.name, known.type)
            for known in self._columns_of(table)
        )
        return Scan(table, fields), [Named(field.name, field.id) for field in fields]


CommonTables = Mapping[str, tuple[exp.CTE, "CommonTables"]]


class _TextBinder:
    """Binds the SELECTs of one text."""

    def __init__(self, binder: Binder, text: Text, schema: str) -> None:
        self._binder = binder
        self._text = text
        self._schema = schema

    def query(self, tree: Expression, ctes: CommonTables) -> tuple[Plan, list[Named]]:
        """Bind a SELECT, a UNION ALL, or either in parentheses."""
        if isinstance(tree, (exp.Select, exp.Union, exp.Subquery)) and tree.args.get("with_"):
            ctes = self._with(tree.args["with_"], ctes)
        if isinstance(tree, exp.Subquery):
            refuse_other_parts(tree)
            return self.query(tree.this, ctes)
        if isinstance(tree, exp.Union) and not tree.args.get("distinct"):
            return self._union(tree, ctes)
        if isinstance(tree, exp.SetOperation):
            raise NotIncremental("SET_OPERATION", type(tree).__name__.upper())
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes)
        raise NotIncremental("SYNTAX_NOT_KNOWN", f"{type(tree).__name__.lower()} in a query")

    def _with(self, with_: exp.With, ctes: CommonTables) -> CommonTables:
        """Return the CTEs that are visible after WITH; each one sees those before it."""
        refuse_other_parts(with_)
        for cte in with_.expressions:
            refuse_other_parts(cte)
            ctes = {**ctes, cte.alias.lower(): (cte, ctes)}
        return ctes

    def _union(self, tree: exp.Union, ctes: CommonTables) -> tuple[Plan, list[Named]]:
        """Bind a chain of unions, which may be long, as one."""
        sides: list[Expression] = []
        left: Expression = tree
        while isinstance(left, exp.Union) and (left is tree or _goes_on(left)):
            refuse_other_parts(left)
            sides.append(left.right)
            left = _without_parentheses(left.left)
        sides.append(left)
        bound = [self.query(side, ctes) for side in reversed(sides)]
        names = [named.name for named in bound[0][1]]
        branches: list[Plan] = []
        for plan, columns in bound:
            if len(columns) != len(names):
                raise NotIncremental("SYNTAX_NOT_KNOWN", "the branches of a union differ in width")
            outputs = tuple(Output(self._binder.fresh(n.name), column(n.id)) for n in columns)
            branches.append(Project(plan, outputs))
        ids = tuple(self._binder.fresh(name) for name in names)
        named = [Named(name, id) for name, id in zip(names, ids, strict=True)]
        return UnionAll(tuple(branches), ids), named

    def _select(self, select: exp.Select, ctes: CommonTables) -> tuple[Plan, list[Named]]:
        refuse_other_parts(select)
        plan, scope = self._from(select, ctes)
        where = select.args.get("where")
        if where is not None:
            condition = self.expression(where.this, scope)
            refuse_aggregates(condition, "WHERE")
            plan = filtered(plan, condition)
        items = self._items(select, scope)
        aggregates = any(_aggregates(item) for _, item in items)
        having, order = select.args.get("having"), select.args.get("order")
        if aggregates or select.args.get("group") or (having and _aggregates(having.this)):
            self._binder.aggregations.add(id(select))
            names = [name for name, _ in items]
            plan, expressions = grouping.group(self, self._binder, plan, scope, select, items)
            items = list(zip(names, expressions, strict=True))
        elif having is not None:
            raise NotIncremental("SYNTAX_NOT_KNOWN", "HAVING without GROUP BY")
        elif order is not None:
            refuse_aggregates(order, "ORDER BY")
        return self._project(plan, items)

    def _project(
        self, plan: Plan, items: list[tuple[str | None, Expression]]
    ) -> tuple[Plan, list[Named]]:
        computed: list[Output] = []
        columns: list[Named] = []
        for name, expression in items:
            if isinstance(expression, exp.Column):
                columns.append(Named(name, expression.name))
                continue
            output = Output(self._binder.fresh(name), expression)
            computed.append(output)
            columns.append(Named(name, output.id))
        if computed:
            # What nothing above can name goes no further: queries may be nested deeply.
            shown = {named.id for named in columns}
            passed = tuple(Output(id, column(id)) for id in plan.columns if id in shown)
            plan = Project(plan, passed + tuple(computed))
        return plan, columns

    def _from(self, select: exp.Select, ctes: CommonTables) -> tuple[Plan, Scope]:
        from_ = select.args.get("from_")
        if from_ is None:
            raise NotIncremental("SYNTAX_NOT_KNOWN", "a SELECT without FROM")
        scope = Scope()
        members = [self._relation(from_.this, scope, ctes)]
        conditions: list[Expression] = []
        for join in select.args.get("joins") or ():
            _refuse_other_joins(join)
            refuse_other_parts(join)
            using = join.args.get("using")
            before = scope.copy() if using else scope
            members.append(self._relation(join.this, scope, ctes))
            if join.args.get("on") is not None:
                conditions.append(self.expression(join.args["on"], scope))
                refuse_aggregates(conditions[-1], "ON")
            if using:
                if any(earlier.kind == "CROSS" for earlier in select.args["joins"]):
                    # A comma reads like CROSS, but binds less tightly than JOIN … USING.
                    raise NotIncremental("SYNTAX_NOT_KNOWN", "USING beside a cross join")
                conditions += self._using(join, before, scope)
        return joined(members, conditions), scope

    def _using(self, join: exp.Join, before: Scope, scope: Scope) -> list[Expression]:
        conditions: list[Expression] = []
        after = Scope(scope.relations[len(before.relations) :])
        pairs: list[tuple[Named, Named]] = []
        for identifier in join.args["using"]:
            left, right = before.find(identifier.name), after.find(identifier.name)
            if left is None or right is None:
                raise NotIncremental("SYNTAX_NOT_KNOWN", f"USING ({identifier.name})")
            conditions.append(exp.EQ(this=column(left), expression=column(right)))
            pairs.append((Named(identifier.name, left), Named(identifier.name, right)))
        scope.merge(pairs)
        return conditions

    def _relation(self, item: Expression, scope: Scope, ctes: CommonTables) -> Plan:
        alias = item.args.get("alias")
        if isinstance(item, exp.Subquery):
            if isinstance(item.this, exp.Table):
                raise NotIncremental("SYNTAX_NOT_KNOWN", "a join in parentheses")
            plan, columns = self.query(item, ctes)
        elif isinstance(item, exp.Table):
            if item.args.get("version") or item.args.get("when"):
                raise NotIncremental("SYNTAX_NOT_KNOWN", "a source at a fixed version")
            refuse_other_parts(item)
            plan, columns = self._table(item, ctes)
        else:
            raise NotIncremental("TABLE_FUNCTION", type(item).__name__.lower())
        scope.add(item.alias or item.name, _renamed(columns, alias))
        return plan

    def _table(self, table: exp.Table, ctes: CommonTables) -> tuple[Plan, list[Named]]:
        if not isinstance(table.this, exp.Identifier):
            raise NotIncremental("TABLE_FUNCTION", table.sql(dialect=SparkDynamic))
        if not table.args.get("db") and table.name.lower() in ctes:
            cte, visible = ctes[table.name.lower()]
            plan, columns = self.query(cte.this, visible)
            return plan, _renamed(columns, cte.args["alias"])
        name = table_name(table, self._schema)
        view = self._text.views.get(name)
        if view is None:
            return self._binder.scan(name)
        return self._view(view)

    def _view(self, view: ViewQuery) -> tuple[Plan, list[Named]]:
        text = view.relation.view
        assert text is not None
        plan, columns = self._binder.text(view.query, text.schema)
        inside = Scope([("", columns)])
        found = [inside.find(name) for name in text.output_columns]
        outside = [known.name for known in view.relation.columns]
        named = [Named(n, id) for n, id in zip(outside, found, strict=True) if id is not None]
        if len(named) != len(outside):
            raise NotIncremental("SYNTAX_NOT_KNOWN", f"the columns of {view.relation.name}")
        return plan, named

    def _items(self, select: exp.Select, scope: Scope) -> list[tuple[str | None, Expression]]:
        """Bind the select list; a later item may use an earlier one's alias."""
        items: list[tuple[str | None, Expression]] = []
        for item in select.expressions:
            star = item if isinstance(item, exp.Star) else item.this
            if isinstance(star, exp.Star) and isinstance(item, (exp.Star, exp.Column)):
                if any(star.args.get(key) for key in ("except_", "replace", "rename", "except")):
                    raise NotIncremental("SYNTAX_NOT_KNOWN", "* EXCEPT")
                alias = item.table if isinstance(item, exp.Column) else ""
                items += [(named.name, column(named.id)) for named in scope.star(alias)]
                continue
            if isinstance(item, exp.Aliases):
                raise NotIncremental("SYNTAX_NOT_KNOWN", "several names for one expression")
            inner = item.this if isinstance(item, exp.Alias) else item
            name = item.alias if isinstance(item, exp.Alias) else _own_name(item)
            items.append((name, self.expression(inner, scope, Aliases(items))))
        return items

    def expression(
        self,
        expression: Expression,
        scope: Scope,
        aliases: Aliases | None = None,
    ) -> Expression:
        """Bind the columns of an expression; `aliases` serve names that no relation has."""
        refuse_other_expressions(expression)

        def change(node: Expression) -> Expression:
            if isinstance(node, exp.Func):
                _refuse_columns_like_functions(node, scope, aliases)
            if not isinstance(node, exp.Column):
                return node
            found = scope.resolve(node)
            if aliases is not None and not node.table:
                found = aliases.resolve(node, found)
            if found is None:
                raise NotIncremental("SYNTAX_NOT_KNOWN", f"the name {node.sql()}")
            return found

        return expression.transform(change)


def _refuse_columns_like_functions(node: exp.Func, scope: Scope, aliases: Aliases | None) -> None:
    """Refuse `current_date` and the like where a column has that name: Spark takes the column."""
    if isinstance(node, exp.Anonymous) or any(node.args.values()):
        return
    for name in node.sql_names():
        if scope.find(name) is not None or (aliases is not None and aliases.have(name)):
            raise NotIncremental("SYNTAX_NOT_KNOWN", f"the name {name.lower()}")


def _goes_on(union: exp.Union) -> bool:
    """Tell whether a union on the left of another one is part of the same chain."""
    return not union.args.get("distinct") and not union.args.get("with_")


def _without_parentheses(query: Expression) -> Expression:
    while isinstance(query, exp.Subquery) and not query.args.get("with_"):
        refuse_other_parts(query)
        query = query.this
    return query


def _own_name(item: Expression) -> str | None:
    return item.name if isinstance(item, (exp.Column, exp.Dot)) else None


def _renamed(columns: list[Named], alias: Expression | None) -> list[Named]:
    if not isinstance(alias, exp.TableAlias):
        return columns
    refuse_other_parts(alias)
    if not alias.columns:
        return columns
    if len(alias.columns) != len(columns):
        raise NotIncremental("SYNTAX_NOT_KNOWN", f"the columns of {alias.name}")
    return [Named(new.name, old.id) for new, old in zip(alias.columns, columns, strict=True)]


def _aggregates(expression: Expression) -> bool:
    return any(is_aggregate(node) for node in expression.walk())


def _refuse_other_joins(join: exp.Join) -> None:
    if join.kind in ("SEMI", "ANTI"):
        raise NotIncremental("SEMI_JOIN", f"{join.side} {join.kind} JOIN".strip())
    if join.side or join.kind == "OUTER":
        raise NotIncremental("OUTER_JOIN", f"{join.side or 'FULL'} JOIN")
    if join.kind not in ("", "INNER", "CROSS") or join.method:
        raise NotIncremental("SYNTAX_NOT_KNOWN", f"{join.method or join.kind} JOIN")
