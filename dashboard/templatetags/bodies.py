"""Bodies, and what a caller may do with a message, in templates."""

from django import template

from dashboard.browse.message_rows import MessageRow
from dashboard.browse.trees import Tree
from streams.access import Caller

register = template.Library()


@register.simple_tag
def value_tree(shown: MessageRow, address: str) -> Tree:
    """A message's body as a tree; ``address`` is that of the page that lists the stream's messages."""
    return shown.tree(address)


@register.simple_tag
def may(caller: Caller, scope: str) -> bool:
    """Whether the caller has a right."""
    return caller.may(scope)
