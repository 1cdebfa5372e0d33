"""What a suite of cases came to: a summary, tables, plots."""
