"""Which steps a query wants of what was counted: a question about days need not have every minute brought to Spark.

Spark finds it out itself. It is given tables with the right columns and rows that nobody knows, a part for each step;
of a step that the query leaves out its optimizer leaves no part in the plan.
"""

from collections.abc import Mapping
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark import plans, tables
from spark.plans import Checked
from spark.transforms.rollups import STEPS

_FIRST = 7_302_915_000_000_000
"""Where the numbers begin that mark the parts; a query that has one of them as its own gets a step too many."""


def steps_wanted(session: SparkSession, checked: Checked) -> Mapping[str, list[str]]:
    """By table of those that a query names the steps of it that it may need; only of tables with a column ``step``.

    Args:
        session: the query's own, whose temporary views are replaced.

    Raises:
        QueryRefused: a name or a type does not fit.
    """
    marks = {
        name: {step: _FIRST + 100 * place + n for n, step in enumerate(STEPS)}
        for place, name in enumerate(sorted(checked.tables))
        if any(column == "step" for column, _ in tables.COLUMNS[name])
    }
    if not marks:
        return {}
    for name in checked.tables:
        _unknown(session, name, marks.get(name, {"": 0})).createOrReplaceTempView(name)
    asked = plans.analyzed(session, checked)
    try:
        plan = str(asked._jdf.queryExecution().optimizedPlan().toString())
    except (PySparkException, Py4JJavaError):
        # What it says of a step cannot be computed; whether it is of one that there is only the rows tell.
        return {name: list(each) for name, each in marks.items()}
    return {name: [step for step, mark in each.items() if str(mark) in plan] for name, each in marks.items()}


def _unknown(session: SparkSession, table: str, marks: Mapping[str, int]) -> DataFrame:
    """A table whose values are not known before it is run."""
    parts = [
        session.range(mark, mark + 2).selectExpr(
            *(
                f"{repr(step) if name == 'step' else _made(kind)} AS {name}"
                for name, kind in tables.COLUMNS[table]
            )
        )
        for step, mark in marks.items()
    ]
    return reduce(DataFrame.union, parts)


def _made(kind: str) -> str:
    return "map(cast(id AS string), cast(id AS string))" if kind.startswith("map") else f"cast(id AS {kind})"
