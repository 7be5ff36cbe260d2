"""The named services that masa knows: sentiment, faces, speech. One file a service.

What they share is in `service` (price, labels, errors of files), `spoken` (from a transcript to a
label), and `amazon_sdk`, `google_sdk` and `ibm_speech` (the vendors' packages, which must not try
again by themselves). Large language models are in `clients/language_models`.
"""
