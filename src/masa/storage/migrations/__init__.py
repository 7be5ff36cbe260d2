"""The schema's history: numbered, never edited."""
