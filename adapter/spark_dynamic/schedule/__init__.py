"""Which dynamic tables are due, and at which data timestamp; time is an argument everywhere."""
