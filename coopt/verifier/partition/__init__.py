"""Are the islands of a partition sound, is their bill right, and could another choice cost less?"""
