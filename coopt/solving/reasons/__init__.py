"""Why a plan is as it is, and what has to give where there is none: every design at once, and the
instance changed.
"""
