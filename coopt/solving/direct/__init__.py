"""Direct links between HB domains: how many between which, for which mapping, with a proof."""
