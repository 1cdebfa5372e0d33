"""Plan networks that stand losses, and prices and efficiencies other than those expected."""
