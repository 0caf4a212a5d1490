"""Everything that matches, as a file."""

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from dashboard import exports
from dashboard.browse.readings import browse_form
from dashboard.browse.windows import span_of
from dashboard.views.door import console_page
from streams import selectors
from streams.access import Caller, stream_for
from streams.errors import Refusal


@console_page
def export(request: HttpRequest, caller: Caller, name: str) -> HttpResponseBase:
    """The messages that the page would show in all, as they were sent, ascending, up to the last one of now."""
    stream = stream_for(caller, name, may="read")
    form = browse_form(request)
    kind = exports.FORMATS.get(request.GET.get("format", "ndjson"))
    if not form.is_valid() or kind is None:
        errors = [str(error) for errors in form.errors.values() for error in errors]
        raise Refusal("validation_error", " ".join(errors) or "An export is ndjson or csv.")
    state = selectors.stream_known(stream).state
    span = span_of(stream, form)
    start = max(span.start, state.first_offset)
    stop = min(state.offset + 1, state.offset + 1 if span.stop is None else span.stop)
    answer = StreamingHttpResponse(
        exports.written(stream, kind, start=start, stop=stop, wanted=form.wanted(message_id=span.message_id)),
        content_type=kind.media_type,
    )
    last = max(start, stop) - 1
    answer["Content-Disposition"] = f'attachment; filename="{name}-{start}-{last}.{kind.ending}"'
    answer["X-Accel-Buffering"] = "no"
    return answer
