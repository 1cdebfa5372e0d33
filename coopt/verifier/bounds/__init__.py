"""Bounds by enumerations of their own: could anything else cost less?"""
