"""The paper's study on published predictions: its cases, its experiments, its tables and figures.

Nothing that a user needs to assess an API of their own lives here.
"""
