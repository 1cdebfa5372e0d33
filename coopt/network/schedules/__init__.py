"""All-reduce on any fabric graph: who sends what to whom when, how long it takes, and what no
schedule beats.
"""
