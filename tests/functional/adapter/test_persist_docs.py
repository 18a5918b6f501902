"""Descriptions as comments on tables, views and columns."""

import pytest
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocs,
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsColumnMissing,
    BasePersistDocsCommentOnQuotedColumn,
    BasePersistDocsQuotedColumnCaseSensitive,
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch,
)


def comments(project, name):
    """Return a relation's comments: of each column, and of the relation itself."""
    rows = project.run_sql(f"describe extended {project.test_schema}.{name}", fetch="all")
    found = {}
    for row in rows:
        if row[0] == "Comment" and row[1]:
            found["relation"] = row[1]
        elif row[0] != "Comment" and row[2]:
            found.setdefault(row[0], row[2])
    return found


class TestPersistDocs(BasePersistDocs):
    # Override: dbt-spark's catalog has no comments, so they are read from the tables.
    def test_has_comments_pglike(self, project):
        table = comments(project, "table_model")
        assert table["relation"].startswith("Table model description")
        assert table["id"].startswith("id Column description")
        assert table["name"].startswith("Some stuff here and then a call to")
        view = comments(project, "view_model")
        assert view["relation"].startswith("View model description")
        assert view["id"].startswith("id Column description")
        assert "name" not in view
        assert comments(project, "no_docs_model") == {}
        for comment in [*table.values(), *view.values()]:
            self._assert_common_comments(comment)


class TestPersistDocsColumnMissing(BasePersistDocsColumnMissing):
    # Override: as above.
    def test_missing_column(self, project):
        found = comments(project, "missing_column")
        assert found["id"].startswith("test id column description")


class TestPersistDocsAllColumnsMissing(BasePersistDocsAllColumnsMissing):
    pass


class TestPersistDocsQuotedColumnCaseSensitive(BasePersistDocsQuotedColumnCaseSensitive):
    pass


class TestPersistDocsQuotedDescription(BasePersistDocsQuotedDescriptionNotAppliedOnMismatch):
    pass


class TestPersistDocsCommentOnQuotedColumn(BasePersistDocsCommentOnQuotedColumn):
    # Override: as above; a column whose name begins with a digit.
    @pytest.fixture(scope="class")
    def run_has_comments(self, project):
        from dbt.tests.util import run_dbt

        def check():
            run_dbt()
            assert comments(project, "quote_model")["2id"].startswith("XXX")

        return check
