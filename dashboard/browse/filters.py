"""What a person looks for in a stream, by key, id, headers and body, as one test of an entry."""

from dashboard.browse import coded
from dashboard.browse.coded import Reading
from streams import naming
from streams.filters.bodies import Decode, body_test
from streams.filters.headers import header_test
from streams.log import entries
from streams.log.entries import Entry
from streams.log.read import Wanted


def entry_test(
    *,
    key: str = "",
    body: str = "",
    message_id: str = "",
    header: str = "",
    reading: Reading = coded.AUTOMATIC,
) -> Wanted | None:
    """The test of an entry that passes all that is given; None when nothing is.

    Args:
        key: a checked key pattern.
        body: a filter of bodies.
        message_id: a whole id.
        header: a filter of headers.
        reading: how bodies are read; one that is decoded passes as what it is shown as, or as it was sent.
    """
    tests: list[Wanted] = []
    if message_id:
        wanted_id = message_id.encode("utf-8", "surrogatepass")
        tests.append(lambda entry: bool(entry[1][1] == wanted_id))
    if key:
        tests.append(_key_test(key))
    if header:
        has_header = header_test(header)
        tests.append(lambda entry: (held := entries.headers(entry)) is not None and has_header(held))
    if body:
        passes = body_test(body)
        decode = _decoding(reading)
        tests.append(lambda entry: passes(entry[1][3], decode))
    if len(tests) < 2:
        return tests[0] if tests else None
    return lambda entry: all(test(entry) for test in tests)


def _key_test(pattern: str) -> Wanted:
    wanted = naming.compiled(pattern)

    def test(entry: Entry) -> bool:
        key = entries.key(entry)
        return key is not None and wanted.fullmatch(key.decode()) is not None

    return test


def _decoding(reading: Reading) -> Decode:
    """What bodies are shown as, where that is not what was sent."""

    def decode(body: bytes) -> bytes | None:
        if not coded.is_string(body):
            return None
        found = coded.decoded(body, reading)
        return None if found is None or found.fault else found.body

    return decode
