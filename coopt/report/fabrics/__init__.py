"""Networks as drawings: where every part stands, told apart from how it is painted."""
