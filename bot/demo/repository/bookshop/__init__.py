"""A small book shop behind a web API."""
