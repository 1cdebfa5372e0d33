"""Islands that grow in phases, stand at sites, keep their bounds after losses and are bought at
doubtful prices.
"""
