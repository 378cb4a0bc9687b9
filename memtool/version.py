"""The version of the package, for every room that names it; pyproject.toml has the same one."""

__version__ = "0.1.0"
