"""Many cases of one study: expand a grid, run every case once, keep the answers as rows. Knows
nothing of pictures.
"""
