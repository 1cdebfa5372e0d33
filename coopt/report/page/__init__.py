"""A plan as one HTML file for a meeting: opens without a network, prints, and says where each
figure comes from.
"""
