"""The words that the pages' scripts say: translated here, read from the page by ``static/js/format.js``."""

from django.utils.translation import gettext, gettext_noop

WORDS = (
    gettext_noop("now"),
    gettext_noop("%(time)s ago"),
    gettext_noop("%(count)s bytes"),
    gettext_noop("%(count)s bytes/s"),
    gettext_noop("active"),
    gettext_noop("idle"),
    gettext_noop("empty"),
    gettext_noop("unavailable"),
    gettext_noop("Copied"),
    gettext_noop("Live"),
    gettext_noop("Live, polling"),
    gettext_noop("Paused"),
    gettext_noop("Reconnecting"),
    gettext_noop("Stale"),
    gettext_noop("Logged out"),
    gettext_noop("Waiting for messages"),
    gettext_noop("Paused, up to %(count)s waiting"),
    gettext_noop("Stopped, %(count)s rows kept"),
    gettext_noop("%(count)s selected"),
)


def translated() -> dict[str, str]:
    """Each word in the language of the page, where that is another one."""
    said = {word: gettext(word) for word in WORDS}
    return {word: here for word, here in said.items() if here != word}
