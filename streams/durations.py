"""How long something takes, as people read it: the same in the reasons of a status as in the console."""

MINUTE, HOUR, DAY = 60, 3600, 86_400


def written(seconds: float) -> str:
    """``2 d 4 h``: the two largest units, the second one left out when it is nought."""
    whole = max(0, int(seconds))
    for unit, name, part, part_name in (
        (DAY, "d", HOUR, "h"),
        (HOUR, "h", MINUTE, "min"),
        (MINUTE, "min", 1, "s"),
    ):
        if whole >= unit:
            rest = whole % unit // part
            return f"{whole // unit} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{whole} s"


def exactly(seconds: int) -> str:
    """``1 h 50 s``: every unit that is not nought."""
    parts, rest = [], max(0, seconds)
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1, "s")):
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts) or "0 s"
