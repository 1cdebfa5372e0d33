"""Find the multipliers that prove a bound of coupled parts."""
