"""Suites of cases: grids are expanded, every case is run once, and answers are stored as rows."""
