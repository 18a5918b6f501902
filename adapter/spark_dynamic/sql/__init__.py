"""SQL text in and out: where tables stand in it, and what Spark says it means."""
