"""Processes that are killed and stopped one after the other, and a store that is told things, in one product."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from okmq.instance import Instance, instance
from okmq.prove.apart import Apart, Say
from okmq.prove.faults import Fault, Target
from okmq.prove.load import Load
from okmq.prove.machine import look

SURGE_S, REST_S = 0.3, 1.0


def under_faults(
    folder: Path,
    *,
    faults: Sequence[Fault],
    say: Say = print,
    within_s: float = float("inf"),
    patient_s: float = 0.0,
) -> Apart:
    """Let faults strike at a product that has its load.

    Args:
        within_s: after this time no other fault strikes.
        patient_s: as of ``Load``.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    with instance(folder, more={"OKMQ_WEB_WORKERS": "2"}) as product:
        return asyncio.run(strike_all(product, faults, say, within_s, patient_s))


async def strike_all(
    product: Instance, faults: Sequence[Fault], say: Say, within_s: float, patient_s: float = 0.0
) -> Apart:
    """The same of a product that runs."""
    load = Load(product.port, token=product.token, patient_s=patient_s)
    apart, target = Apart(load=load), Target(instance=product, scene=load.scene)
    began = monotonic()
    async with load.running():
        await target.publishes_again(began)
        for number, fault in enumerate(faults, start=1):
            await target.all_run()
            await load.surge(SURGE_S)
            since, messages = look(), load.scene.messages
            struck = await fault(target)
            struck = replace(struck, messages=messages, taken=load.scene.machine.taken(since))
            load.calm()
            apart.struck.append(struck)
            say(f"  {number}/{len(faults)} {struck.told()}")
            await asyncio.sleep(REST_S)
            if monotonic() - began > within_s:
                if number < len(faults):
                    apart.left_out.append(f"{len(faults) - number} of {len(faults)} faults: the time was up")
                    say("The time for faults is up; the others are left out.")
                break
        await target.all_run()
        say("  No more faults; what is left is worked off.")
    return apart
