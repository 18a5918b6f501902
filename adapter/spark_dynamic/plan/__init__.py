"""The logical plan of a query: nodes, expressions, and facts about them."""
