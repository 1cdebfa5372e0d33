"""Charts one can point at and click on, as HTML fragments that bring all they need."""
