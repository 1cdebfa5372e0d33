"""Networks whose links one can see: direct links between HB domains, and small switched trees, as networkx graphs."""
