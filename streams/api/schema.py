"""How drf-spectacular reads an ``Operation``."""

from drf_spectacular.openapi import AutoSchema


class OperationSchema(AutoSchema):
    """Takes everything from the view's ``operations``."""
