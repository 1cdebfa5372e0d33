"""The planner's page: a question is edited in a browser, and its answer follows."""
