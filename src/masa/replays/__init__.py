"""Assessments of recorded answers, played many times.

What would each method have cost, and how often is it right?

`replay` gives the error of each method by number of queries, `whole_runs` plays assessments with
their stopping rule, `made_up_change` assesses changes that are made up, for `masa plan`. Nothing
here asks an API.
"""
