"""Results, shown to people: in words, on the terminal, as charts.

Nothing here computes a result or queries an API.
"""
