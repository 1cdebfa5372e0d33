"""From columns to a proven plan: formulation, HiGHS, repair, status."""
