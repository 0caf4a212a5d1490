"""Filters of the console's lists that people keep under a name."""

from typing import ClassVar

from django.db import models

from streams.models.workspace import Workspace

FILTER_PAGES = {
    "messages": ("start", "at", "until", "key", "header", "match", "cols", "decode"),
    "streams": ("name", "regex", "label", "internal", "sort"),
    "groups": ("group", "regex", "status", "sort"),
    "events": ("actor", "about", "kind", "stream", "group", "since", "until"),
}
"""The pages, and the parameters of their addresses that are filters."""


class SavedFilter(models.Model):
    """The filters of a page under a name.

    Attributes:
        page: a key of ``FILTER_PAGES``.
        owner: the person whose own it is; empty where it is shared with the workspace.
        query: a query string of the page's filters, as its address has them.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="saved_filters")
    page = models.CharField(max_length=10)
    owner = models.CharField(max_length=200, blank=True, default="")
    name = models.CharField(max_length=60)
    query = models.TextField()
    saved_by = models.CharField(max_length=200)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "page", "owner", "name"], name="saved_filter_name_once_an_owner"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def shared(self) -> bool:
        """Whether everybody in the workspace has it."""
        return not self.owner
