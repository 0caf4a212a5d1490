"""What the nodes of a plan that does more than read are called in SQL, for people whose query is refused."""

import re

_WORDS = {
    "AddColumns": "ALTER",
    "AnalyzeTable": "ANALYZE",
    "CompoundBody": "BEGIN … END",
    "CreateVariable": "DECLARE",
    "ExecuteImmediate": "EXECUTE IMMEDIATE",
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER(…)",
    "Identifier": "IDENTIFIER(…)",
    "InsertIntoStatement": "INSERT",
    "NamedParameter": "a parameter (:name)",
    "NamedStreamingRelation": "STREAM",
    "PipeExpression": "|>",
    "PipeOperator": "|>",
    "PlanWithUnresolvedIdentifier": "IDENTIFIER(…)",
    "PosParameter": "a parameter (?)",
    "RelationTimeTravel": "VERSION AS OF or TIMESTAMP AS OF",
    "ScriptTransformation": "TRANSFORM … USING",
    "SetCatalogAndNamespace": "USE",
    "SetCatalogCommand": "SET CATALOG",
    "SetNamespaceCommand": "USE",
    "SetVariable": "SET",
}
# What a name of Spark's begins with where the rest says on what: CreateTableAsSelect, DescribeRelation, SetCommand, …
_VERBS = """
Add Alter Analyze Cache Call Clear Comment Create Delete Describe Drop Execute Explain Insert List Load Merge Refresh
Rename Repair Replace Reset Set Show Truncate Uncache Update Use
"""
_VERB = re.compile(rf"({'|'.join(_VERBS.split())})(?=[A-Z]|$)")


def in_sql(kind: str) -> str | None:
    """A node in words of SQL, by the name of its class; None of one that has none."""
    name = kind.rstrip("$").rpartition("$")[2].removeprefix("Unresolved")
    if name in _WORDS:
        return _WORDS[name]
    verb = _VERB.match(name)
    return None if verb is None else verb[1].upper()
