"""The pipelines that ship with Antiphon, one folder each. The only place for model names."""
