"""Large language models as classifiers: one prompt, one parser and one way to count tokens for all.

`model` is what they share, `reading` finds the label in what a model said, and each other file
speaks to one provider over plain HTTP, Bedrock through Amazon's package.
"""
