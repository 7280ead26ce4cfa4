"""What does the shape function of an op say, over all graphs that were built: nothing at all, or too little?"""

from __future__ import annotations

from faultlens.custom_op.fuzz.campaign import Campaign
from faultlens.custom_op.fuzz.rules import RULES
from faultlens.custom_op.fuzz.tested import OpUnderTest
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.records.op_finding import OpFinding

ENOUGH = 4  # graphs


def findings(op: OpUnderTest, campaign: Campaign) -> list[OpFinding]:
    found = []
    if words := unknown_everywhere(campaign):
        found.append(_finding(op, "no-shape", words))
    refused = next((each.told["refused"] for each in campaign.graphs if each.told["refused"]), "")
    if refused:
        found.append(_finding(op, "refused-in-graphs", refused))
    return found


def unknown_everywhere(campaign: Campaign) -> str | None:
    """No rank is ever known, although the output always has the shape of an input, or no dimensions at all.

    Where the shape depends on values, a shape function can say no more, and nothing is said of it."""
    graphs = [each for each in campaign.graphs if each.told["shapes"]]
    if len(graphs) < ENOUGH or not graphs[0].told["ok"]:
        return None
    if any(shape is not None for each in graphs for shape in each.told["shapes"][0]):
        return None
    results = [each.told["ok"][0] for each in graphs]
    if len({tuple(shape) for shape in results}) == 1:
        return f"its rank is never known, although it is always {results[0]}"
    given = [each.told["given"] for each in graphs]
    for index in range(min(map(len, given))):
        if all(shape == inputs[index] for shape, inputs in zip(results, given, strict=True)):
            return f"its rank is never known, although it always has the shape of input {index}"
    return None


def _finding(op: OpUnderTest, name: str, words: str) -> OpFinding:
    rule = RULES[name]
    title = rule.title.format(op=op.name, words=words)
    evidence = (Evidence("built in graphs whose input shapes are known", "op test"),)
    return OpFinding(rule.code, name, rule.severity, title, op=op.name, evidence=evidence, fixes=(Fix(rule.fix),))
