"""What the tables of an instance must agree on, beyond what each says of itself."""
