"""A package with templates, for the tests."""
