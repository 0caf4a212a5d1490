"""What a run of the history did, in words."""

from collections.abc import Mapping

from django.utils.translation import gettext, ngettext, pgettext

from dashboard import formats
from streams.models import Run
from streams.models.history import Job, RunState

ORDER = ("messages", "batches", "points", "samples", "windows", "files")


def did(run: Run) -> str:
    """What a run has done so far, without what there was none of; nothing of one that has not got that far."""
    counts: Mapping[str, int] = {name: value for name, value in run.counts.items() if value}
    names = [name for name in ORDER if name in counts] + [name for name in counts if name not in ORDER]
    told = [_named(name, counts[name], run.job, counts) for name in names]
    said = " · ".join(filter(None, told))
    return said or (gettext("nothing new") if run.state == RunState.SUCCEEDED else "")


def _named(name: str, value: int, job: str, counts: Mapping[str, int]) -> str:
    """One number with what a person knows it as; ``""`` for one that another says."""
    n = f"{value:,}"
    match name:
        case "messages":
            verb = {
                Job.ARCHIVE: pgettext("of messages", "archived"),
                Job.COMPACT: pgettext("of messages", "rewritten"),
                Job.ROLLUP: pgettext("of messages", "counted"),
            }.get(Job(job), "")
            size = f" ({formats.size(counts['bytes'])})" if "bytes" in counts else ""
            return f"{formats.messages(value)}{size} {verb}".rstrip()
        case "bytes":
            return "" if "messages" in counts else formats.size(value)
        case "batches":
            return ngettext("in {n} batch", "in {n} batches", value).format(n=n)
        case "points":
            return ngettext("{n} sum updated", "{n} sums updated", value).format(n=n)
        case "samples":
            return ngettext("{n} group figure updated", "{n} group figures updated", value).format(n=n)
        case "windows":
            return ngettext("{n} window rescanned", "{n} windows rescanned", value).format(n=n)
        case "twice":
            return ngettext(
                "{n} message is in the history twice",
                "{n} messages are in the history twice",
                value,
            ).format(n=n)
        case "files":
            into = f"{counts['into']:,}" if "into" in counts else "0"
            return ngettext("{n} file merged into {into}", "{n} files merged into {into}", value).format(
                n=n, into=into
            )
        case "into":
            return "" if "files" in counts else n
        case _:
            return f"{name} {n}"
