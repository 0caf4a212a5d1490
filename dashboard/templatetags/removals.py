"""What was removed for a while, named so that one removal is known from another."""

from django import template
from django.utils.translation import gettext as _

from dashboard import formats
from streams.selectors.removals import RemovalView

register = template.Library()


@register.filter
def what_was_removed(removal: RemovalView) -> str:
    """``Message 8``, ``Everything``, ``Below 1,000, key shop.*``."""
    if removal.kind == "message.deleted":
        if removal.messages == 1:
            return _("Message %(offset)s") % {"offset": formats.count(removal.first_offset)}
        return _("Messages from %(offset)s on") % {"offset": formats.count(removal.first_offset)}
    asked, parts = removal.asked, []
    if "offset" in asked:
        parts.append(_("below %(offset)s") % {"offset": formats.count(int(asked["offset"]))})
    if "keep" in asked:
        parts.append(_("all but the newest %(count)s") % {"count": formats.count(int(asked["keep"]))})
    if "key" in asked:
        parts.append(_("key %(key)s") % {"key": asked["key"]})
    told = ", ".join(parts) or _("everything")
    return told[:1].upper() + told[1:]
